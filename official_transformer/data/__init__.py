"""Data: text lines, tokenizers, and the pipeline of training batches."""
