"""Text: lines, their form, vocabularies, and what cuts lines into tokens."""
