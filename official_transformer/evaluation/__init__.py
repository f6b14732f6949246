"""Evaluation: how good a translation is."""
