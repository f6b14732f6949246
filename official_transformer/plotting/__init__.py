"""Pictures of numbers, by matplotlib: the extra `[plots]`."""
