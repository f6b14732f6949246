"""Command-line flags with the names and defaults of the official models."""
