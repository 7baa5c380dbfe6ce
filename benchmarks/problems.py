"""The benchmark problems: SimpleMKL's bank on synthetic data of the sizes the speed notes speak of."""

from __future__ import annotations

import numpy as np

from kernelweave import KernelBank


def simple_bank(
    n: int, n_features: int, n_kernels: int, seed: int = 0
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the first kernels of SimpleMKL's bank on Gaussian data with a quadratic boundary and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.7 * rng.normal(size=n)
    fitted = KernelBank.per_feature().fit(X)
    kernels = [K.copy() for _, K in zip(range(n_kernels), fitted.grams(), strict=False)]
    return kernels, np.where(score > 0, 1.0, -1.0)


SIZES = {
    "n=538 M=117": (538, 8, 117),
    "n=2000 M=50": (2000, 8, 50),
}
