"""Importing: models that other Transformers have trained."""
