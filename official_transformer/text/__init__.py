"""Text: lines, their form, vocabularies and tokenizers."""
