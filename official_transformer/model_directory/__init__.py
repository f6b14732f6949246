"""A model directory: what is in it, and how it is read and written."""
