"""The multiclass p-norm problem, and what its dual norms ask for again and again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.gram.protocol import KernelRows


@dataclass(frozen=True)
class PNormProblem:
    r"""min over w of (λ/2)‖w‖²_{2,p} + (1/N) Σ weight_i ℓ(w, x_i, y_i), 1 < p ≤ 2 [Orabona10, Eq. (9)].

    ℓ is the multiclass hinge of [Orabona10, Eq. (5)], without intercept; y are classes from 0 on.
    """

    rows: KernelRows = field(repr=False)
    y: AnyArray = field(repr=False)
    n_classes: int
    lam: float
    p: float
    weight: Vector = field(repr=False)

    @property
    def n_samples(self) -> int:
        return int(self.y.size)

    @property
    def q(self) -> float:
        """The exponent of the dual norm, 1/p + 1/q = 1."""
        return self.p / (self.p - 1.0)

    @property
    def scale(self) -> float:
        """λN, which turns dual variables into coefficients."""
        return self.lam * self.n_samples

    def slopes(self, s: Vector) -> tuple[float, Vector]:
        """Return u = (Σ s_j^{q/2})^{2/q} and the weights σ_j = (s_j/u)^{q/2−1} of the kernels."""
        return norm_and_slopes(s, self.q)


def norm_and_slopes(s: Vector, q: float) -> tuple[float, Vector]:
    """Return (Σ s_j^{q/2})^{2/q} and its slopes; powers of shares of the largest, for q may be a hundred."""
    largest = float(s.max(initial=0.0))
    if largest <= 0.0:
        return 0.0, np.zeros_like(s)
    shares = np.maximum(s, 0.0) / largest
    powers = np.ones_like(s) if q == 2.0 else shares ** (0.5 * q - 1.0)
    total = float(powers @ shares)
    factor = total ** (2.0 / q - 1.0)
    return largest * factor * total, factor * powers
