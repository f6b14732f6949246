"""Finding what is wrong with text and with prepared data."""
