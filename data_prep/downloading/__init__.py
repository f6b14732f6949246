"""Getting corpora from where they are published."""
