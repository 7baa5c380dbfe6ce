"""Samples that come by once: batch after batch, with all that was learnt before as one quadratic."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.solvers.feature_problem import (
    FeaturePoint,
    FeatureProblem,
    PassSums,
    SampleBlock,
    sums_over_block,
)

# Losses with a kink are smoothed over widths from the first to the last; samples of the past are remembered as the
# first shows them: over the last a sample beyond its margin has a slope without curvature, and would push for ever.
FIRST_WIDTH, LAST_WIDTH = 4.0, 0.1


@dataclass(frozen=True)
class StreamPoint:
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
    def start(cls, point: FeaturePoint) -> StreamPoint:
        """Return a stream that has seen nothing."""
        D, k = sum(w.shape[0] for w in point.w), point.bias.size
        return cls(point, np.zeros((k, D + 1, D + 1)), np.zeros((D + 1, k)))

    def after(
        self, block: SampleBlock, problem: FeatureProblem, tol: float = 1e-3, max_iter: int = 50
    ) -> StreamPoint:
        """Return the stream after one more batch; ``problem`` has the parts, its samples are not looked at."""

        def sums(point: FeaturePoint, before: FeaturePoint | None, shares: Vector, width: float) -> PassSums:
            which, dtype = point.working.tolist(), problem.dtype
            return sums_over_block(
                block, problem.maps, problem.learner, point, before, shares, width, which, dtype, True
            )

        point, width, shares = self.point, FIRST_WIDTH, 0.5 ** np.arange(12)
        found = sums(point, None, np.ones(1), width)
        for _ in range(max_iter):
            H, slopes = problem.quadratic(point, found)
            new = problem.minimise(point, self.hessians + H, self.slopes + slopes)
            way = sums(new, point, np.append(shares, 0.0), width).smoothed
            values = [
                self._value(point.towards(new, share), problem) + loss
                for share, loss in zip([*shares, 0.0], way, strict=True)
            ]
            best = int(np.argmin(values))
            point = point.towards(new, shares[best]) if best < shares.size else point
            if values[-1] - values[best] <= tol * abs(values[best]):
                if width <= LAST_WIDTH:
                    break
                width = max(0.5 * width, LAST_WIDTH)
            found = sums(point, None, np.ones(1), width)
        H, slopes = problem.quadratic(point, sums(point, None, np.ones(1), FIRST_WIDTH))
        return StreamPoint(point, self.hessians + H, self.slopes + slopes, self.n_samples + len(block.Y))

    def _value(self, point: FeaturePoint, problem: FeatureProblem) -> float:
        """Return the objective without the losses of the present batch."""
        x = np.vstack([*point.w, point.bias[None]])
        past = 0.5 * np.einsum("ic,cij,jc->", x, self.hessians, x) - float(np.sum(self.slopes * x))
        return problem.geometry.value(point.eta) + point.norm + float(past)
