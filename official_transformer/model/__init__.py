"""The model: layers, stacks, beam search, the `Transformer` itself."""

# Keras finds the layers of a saved model once any module here is imported.
from official_transformer.model import building

__all__ = ["building"]
