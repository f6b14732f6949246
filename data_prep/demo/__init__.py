"""The grammar behind the demo corpus."""
