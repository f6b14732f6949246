"""Reading parallel text: which files it is in, blocks of lines, samples."""
