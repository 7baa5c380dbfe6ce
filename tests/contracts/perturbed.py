"""Kernels that rounding may have turned into a given one."""

from collections.abc import Iterator

import numpy as np


def perturbed(K: np.ndarray, size: float, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield kernels whose entries differ from those of K by at most this share of theirs."""
    n = len(K)
    for share in (1.0 - size, 1.0 + size):  # all the same way
        yield share * K
    for _ in range(4):
        # K times a kernel whose entries lie within 1 ± size is a kernel, entry by entry.
        signs = rng.choice([-1.0, 1.0], size=n)
        yield K * (1.0 + size * (np.outer(signs, signs) - 1.0) / 2.0)
        angles = rng.uniform(-1.0, 1.0, size=n) * np.arccos(1.0 - size)
        yield K * (np.cos(angles)[:, None] * np.cos(angles) + np.sin(angles)[:, None] * np.sin(angles))
