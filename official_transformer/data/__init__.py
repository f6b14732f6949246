"""Training data: records, their order, and the pipeline of batches."""
