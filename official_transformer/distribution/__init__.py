"""The devices and processes that share a run."""
