"""Checks of text and of prepared data."""
