"""From pairs of lines to shards of records."""
