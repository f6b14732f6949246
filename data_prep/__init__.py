"""Data preparation: from parallel text to training data."""
