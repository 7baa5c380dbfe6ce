"""The online stage on a stream: each sample passes once, and only those that changed the model are kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.multiclass.problem import norm_and_slopes
from kernelweave.multiclass.stochastic import rival


@dataclass(frozen=True)
class OnlineRule:
    """The step of stage 1 [Orabona10, Algorithm 1]: θ̄ += eta · weight · z̄ where the loss is positive."""

    q: float
    eta: float = 2.0

    def through_kernels(
        self, G: AnyArray, K: AnyArray, y: AnyArray, weight: Vector, s: Vector
    ) -> tuple[Matrix, Vector]:
        """Pass samples with scores G (kernels, b, classes) and kernels K (kernels, b, b) among themselves.

        Returns their coefficients (b, classes) and the new ‖θ^j‖².
        """
        G, s = G.copy(), s.copy()
        B = np.zeros(G.shape[1:])
        for k, label in enumerate(y):
            each = G[:, k].copy()
            other, loss = rival(norm_and_slopes(s, self.q)[1] @ each / self.q, int(label))
            step = self.eta * weight[k]
            if loss <= 0.0 or step <= 0.0:
                continue
            s += 2.0 * step * (each[:, label] - each[:, other]) + 2.0 * step * step * K[:, k, k]
            np.maximum(s, 0.0, out=s)
            B[k, label] += step
            B[k, other] -= step
            G[:, :, label] += step * K[:, k]
            G[:, :, other] -= step * K[:, k]
        return B, s

    def through_features(
        self, Phi: Matrix, y: AnyArray, weight: Vector, offsets: Indices, theta: Matrix, s: Vector
    ) -> tuple[Matrix, Vector, int]:
        """Pass samples given by explicit features; return the new θ, ‖θ^j‖² and the updates."""
        theta, s = theta.copy(), s.copy()
        labels, ends = y.astype(np.int64), offsets.astype(np.int64)
        updates = _core.online_steps(
            np.ascontiguousarray(Phi), labels, weight, ends, self.q, self.eta, theta, s
        )
        return theta, s, updates


@dataclass(frozen=True)
class Standing:
    """Where an online model stands: eta_j = σ_j, norms ‖w^j‖, and how much each coefficient counts, 1/q."""

    q: float
    s: Vector
    eta: Vector = field(init=False)
    norms: Vector = field(init=False)

    def __post_init__(self) -> None:
        eta = norm_and_slopes(self.s, self.q)[1]
        object.__setattr__(self, "eta", eta)
        object.__setattr__(self, "norms", eta * np.sqrt(self.s) / self.q)
