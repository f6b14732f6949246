"""The machine: processor, threads, devices, memory, TensorFlow's start."""
