"""What the command line does with files: read tables, say what is what, fit, predict, inspect."""
