"""Newton's method on explicit features: passes over samples in blocks, that any machine can share in."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import Vector
from kernelweave.geometry.base import Geometry, SupportsWorkingSet
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.feature_problem import BoundedPoint, FeaturePoint, FeatureProblem
from kernelweave.solvers.problem import Progress, Record


@dataclass(frozen=True)
class FeatureResult:
    """What was found: the point, bounds of the optimum for the kernels that the features stand for, passes."""

    point: FeaturePoint
    certificate: Certificate
    history: tuple[Record, ...] = field(repr=False)
    stopped: str

    @property
    def n_iter(self) -> int:
        """How many passes over samples were made, over some of them or over all."""
        return len(self.history)


@dataclass
class FeatureNewton(Part):
    r"""Newton's method for kernels by explicit features, from samples that come in blocks.

    .. math:: \min_{\eta \in \mathcal M,\, w,\, b} \tfrac12 \sum_m \frac{\|w_m\|^2}{\eta_m} + r(\eta)
       + \sum_i \ell_i\Bigl(\sum_m w_m'\varphi_m(x_i) + b\Bigr)

    One pass over the samples adds up the losses, their slopes and their curvature; weights and w are then found
    together on these sums, whose size does not depend on the number of samples. Few samples are solved first.

    Parameters
    ----------
    tol : float, default=1e-4
        Relative duality gap to stop at.
    max_iter : int, default=100
        Most passes over all samples.

    Notes
    -----
    Losses with a kink are smoothed over a width that shrinks as the gap closes. Dual coefficients follow from the
    slopes of the losses; the last pass, in double precision and over all kernels, bounds the optimum from both
    sides. Kernels outside the working set that would lower the objective enter, two at a time.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> from kernelweave.solvers import FeatureNewton
    >>> FeatureNewton(tol=1e-3)
    FeatureNewton(tol=0.001, max_iter=100)

    """

    # Shares of a step that are tried when the whole of it does not lower the objective.
    shares: ClassVar[Vector] = np.linspace(0.0, 1.0, 21)
    # Widths of smoothing begin at the first and shrink by the second factor from pass to pass.
    first_width: ClassVar[float] = 4.0
    shrink: ClassVar[float] = 0.4

    tol: float = 1e-4
    max_iter: int = 100

    def solve(self, problem: FeatureProblem, eta: Vector, progress: Progress | None = None) -> FeatureResult:
        """Solve from kernel weights found elsewhere, which say what kernels to begin with."""
        geometry, n_kernels = problem.geometry, eta.size
        geometry.check(n_kernels)
        working, part = np.arange(n_kernels), geometry
        if isinstance(geometry, SupportsWorkingSet):
            working, part = np.flatnonzero(eta), geometry.restricted(n_kernels)
        point = problem.zero(working, part.project(eta[working]))
        log, width, n = _Log(progress), self.first_width, problem.samples.n_samples
        # Which kernels count is found out on few samples; more of them, and then all, start from there.
        for size, tol in ((max(5_000, n // 64), 1e-2), (n // 8, 1e-2), (n, self.tol)):
            samples = problem.samples if size == n else problem.samples.sample(size)
            if samples is None:
                continue
            level = replace(problem, samples=samples)
            found = self._solve_level(level, part, point, tol, width, log, check_all=size != n // 8)
            point, width = found.point, 2.0 * found.width
            if found.stopped == "interrupted":
                found = self._over_all_kernels(problem, found) if size != n else found
                break
        return FeatureResult(point, found.certificate, tuple(log.records), found.stopped)

    def _solve_level(
        self,
        problem: FeatureProblem,
        part: Geometry,
        point: FeaturePoint,
        tol: float,
        width: float,
        log: _Log,
        *,
        check_all: bool,
    ) -> BoundedPoint:
        """Close the gap over the kernels in use, then let others in, until that of all kernels is closed.

        ``part`` is the geometry of the kernels in use.
        """
        while True:
            found = self._descend(replace(problem, geometry=part), point, 0.9 * tol, width, log)
            if not check_all:
                return found
            found = self._over_all_kernels(problem, found)
            log.add(found)
            if found.certificate.relative_gap <= tol:
                return replace(found, stopped="converged")
            entering = found.entering()
            if found.stopped != "converged":
                return found
            if not entering.size:
                return replace(found, stopped="rounding")
            point, width = problem.with_kernels(found.point, entering), 4.0 * found.width

    def _descend(
        self, problem: FeatureProblem, point: FeaturePoint, tol: float, width: float, log: _Log
    ) -> BoundedPoint:
        """Close the gap over the kernels of the point, as far as passes in working precision can."""
        before: FeaturePoint | None = None
        best: BoundedPoint | None = None
        n_failures = 0
        for _ in range(self.max_iter):
            shares = np.ones(1) if before is None else self.shares
            try:
                sums = problem.pass_over(point, before, shares, width, want_hessian=True)
            except KeyboardInterrupt:
                if best is None:
                    raise
                return replace(best, stopped="interrupted")
            if before is not None:
                share = problem.best_share(before, point, sums.smoothed, shares)
                if share < 1.0:  # the whole step leads uphill: look again from where it leads down to
                    n_failures += share == 0.0
                    if n_failures > 3:
                        break
                    point, before = before.towards(point, share), None
                    continue
            found = problem.bounds(point, sums, width)
            log.add(found)
            if best is None or found.certificate.gap < best.certificate.gap:
                best = found
            if found.certificate.relative_gap <= tol:
                return replace(found, stopped="converged")
            if found.smoothed.gap <= 0.3 * found.certificate.gap:
                width *= self.shrink  # what is left of the gap is that losses are smoothed
                before = None
            else:
                before = point
            point = problem.model_minimiser(point, sums)
        assert best is not None
        return replace(best, stopped="stalled" if n_failures > 3 else "max_iter")

    def _over_all_kernels(self, problem: FeatureProblem, found: BoundedPoint) -> BoundedPoint:
        """Return the bounds over all kernels, in double precision."""
        every = range(len(problem.maps.transforms))
        exact = replace(problem, dtype="float64")
        sums = exact.pass_over(found.point, None, np.ones(1), found.width, which=every)
        return replace(exact.bounds(found.point, sums, found.width, every), stopped=found.stopped)


@dataclass
class _Log:
    """The records of all passes."""

    progress: Progress | None
    records: list[Record] = field(default_factory=list)
    _began: float = field(default_factory=time.perf_counter)

    def add(self, found: BoundedPoint) -> None:
        seconds = time.perf_counter() - self._began
        self.records.append(Record(found.certificate, seconds, int(np.count_nonzero(found.point.eta))))
        if self.progress is not None:
            self.progress(self.records[-1])
