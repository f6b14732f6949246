"""Data preparation: from parallel text to what training reads."""
