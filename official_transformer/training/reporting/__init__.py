"""Progress, profiles and summaries of a run."""
