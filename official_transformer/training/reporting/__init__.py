"""What a run tells of itself while it goes on."""
