"""The modes of the command line, each with a record of its flags."""
