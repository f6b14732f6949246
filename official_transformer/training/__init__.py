"""Training: loss, optimizer, checkpoints and the training run."""
