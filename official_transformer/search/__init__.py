"""Beam search and sampling over any step function."""
