"""Files and directories, here or in a remote store, and how they survive."""
