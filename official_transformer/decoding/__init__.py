"""Decoding: lines of text in, translated lines out, order kept."""
