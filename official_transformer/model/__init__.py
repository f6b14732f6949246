"""The model: layers, stacks, beam search, the `Transformer` itself."""
