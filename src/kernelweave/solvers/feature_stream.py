"""Samples that come by once: batch after batch, with all that was learnt before as one quadratic."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave._typing import AnyArray, Matrix
from kernelweave.solvers.feature_problem import (
    Block,
    FeaturePoint,
    FeatureProblem,
    minimise_model,
    sums_over_block,
)


@dataclass(frozen=True)
class FeatureStream:
    """A point, and the losses of all samples seen so far by their slopes and curvature where they were learnt.

    Of past samples only ½ x'Hx − slopes'x is kept, x being w and bias: its size does not grow. A batch is learnt by
    Newton's method on its own losses plus that quadratic, and then joins it. With the square loss nothing is lost by
    that; with others the samples of long ago are remembered as they looked then.
    """

    point: FeaturePoint
    hessians: AnyArray = field(repr=False)  # (targets, D + 1, D + 1)
    slopes: Matrix = field(repr=False)  # (D + 1, targets)
    n_samples: int = 0

    @classmethod
    def start(cls, point: FeaturePoint) -> FeatureStream:
        """Return a stream that has seen nothing."""
        D, k = sum(w.shape[0] for w in point.w), point.bias.size
        return cls(point, np.zeros((k, D + 1, D + 1)), np.zeros((D + 1, k)))

    def after(
        self, block: Block, problem: FeatureProblem, tol: float = 1e-3, max_iter: int = 50
    ) -> FeatureStream:
        """Return the stream after one more batch; ``problem`` has the parts, its samples are not looked at."""
        point, which = self.point, self.point.working.tolist()
        width, before = 4.0, np.inf
        widths = np.array([w.shape[0] for w in point.w])
        for _ in range(max_iter):
            sums = sums_over_block(
                block,
                problem.maps,
                problem.learner,
                point,
                None,
                np.ones(1),
                width,
                which,
                problem.dtype,
                True,
            )
            H, slopes = problem.quadratic(point, sums)
            value = self._value(point, problem) + float(sums.smoothed[-1])
            w, bias, eta = minimise_model(
                self.hessians + H,
                self.slopes + slopes,
                widths,
                point.eta,
                problem.geometry,
                problem.learner.has_bias,
            )
            new = replace(point, eta=eta, w=tuple(np.split(w, np.cumsum(widths)[:-1])), bias=bias)
            if abs(before - value) <= tol * abs(value) and width <= 0.1:
                break
            # Half the way where the last step led uphill.
            point = new if value <= before * (1.0 + 1e-9) else point.towards(new, 0.5)
            before, width = value, max(0.5 * width, 0.1)
        return FeatureStream(point, self.hessians + H, self.slopes + slopes, self.n_samples + len(block.Y))

    def _value(self, point: FeaturePoint, problem: FeatureProblem) -> float:
        """Return the objective without the losses of the present batch."""
        x = np.vstack([*point.w, point.bias[None]])
        past = 0.5 * np.einsum("ic,cij,jc->", x, self.hessians, x) - float(np.sum(self.slopes * x))
        return problem.geometry.value(point.eta) + point.norm + float(past)
