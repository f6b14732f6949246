"""Model directories: their files, and how these are read and written."""
