"""Kernels of few variables by a small basis: a few samples, or knots between them, that determine them."""
