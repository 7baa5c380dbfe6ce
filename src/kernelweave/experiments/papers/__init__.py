"""One module per paper's study: each declares ``EXPERIMENTS``, and the registry finds it."""
