"""The benchmark problems: SimpleMKL's bank on synthetic data of the sizes the speed notes speak of."""

from __future__ import annotations

import numpy as np

from kernelweave import KernelBank
from kernelweave.bank.layout import Layout

# samples, variables, kernels
SIZES = {
    "n=538 M=117": (538, 8, 117),
    "n=2000 M=50": (2000, 8, 50),
    "n=5000 M=20": (5000, 8, 20),
}


def samples(n: int, n_features: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian data with a quadratic boundary and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.7 * rng.normal(size=n)
    return X, np.where(score > 0, 1.0, -1.0)


def first_kernels(X: np.ndarray, n_kernels: int) -> KernelBank:
    """Return the first kernels of SimpleMKL's bank for these columns."""
    bank = KernelBank.per_feature()
    return KernelBank(bank.plan(Layout(X, None))[:n_kernels], scaling=bank.scaling)


def simple_bank(
    n: int, n_features: int, n_kernels: int, seed: int = 0
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the first kernels of SimpleMKL's bank as matrices."""
    X, y = samples(n, n_features, seed)
    return list(first_kernels(X, n_kernels).fit(X).grams()), y
