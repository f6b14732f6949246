"""The TensorFlow official Transformer on today's TensorFlow and Keras 3.

Importing this package imports neither TensorFlow nor any module below it, so
that command lines can answer `--help` at once.
"""

__version__ = "1.0.0"
