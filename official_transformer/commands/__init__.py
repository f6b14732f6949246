"""What each mode of the command line does: flags in, one command run."""
