"""The plugin that swaps in the instrumented core is not a test."""

collect_ignore = ["instrumented.py"]
