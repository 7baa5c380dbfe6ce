"""Newton's method on explicit features: passes over samples in blocks, that any machine can share in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import Matrix, Vector
from kernelweave.geometry.base import Geometry, SupportsWorkingSet
from kernelweave.gram.protocol import GramStack
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.choice import choose_solver
from kernelweave.solvers.feature_problem import (
    BoundedPoint,
    FeaturePoint,
    FeatureProblem,
    PassSums,
    SampleBlocks,
)
from kernelweave.solvers.problem import Problem, Progress, Record, RecordLog
from kernelweave.solvers.warm_start import representative_rows

# The exact kernels of this many samples say which of them to begin with.
N_FIRST = 1_000
# From more samples than these on passes compute in single precision as long as that closes the gap.
MANY = 10_000


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
    max_iter : int, default=200
        Most passes over all samples, not counting those that check kernels out of use.

    Notes
    -----
    Losses with a kink are smoothed over a width that shrinks as the gap closes. Dual coefficients follow from the
    slopes of the losses; the last pass, in double precision and over all kernels, bounds the optimum from both
    sides. Kernels outside the working set that would lower the objective enter, a few at a time.
    The bounds leave no room for the rounding of double precision, some 1e-12 of the objective where features are well
    conditioned.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> from kernelweave.solvers import FeatureNewton
    >>> FeatureNewton(tol=1e-3)
    FeatureNewton(tol=0.001, max_iter=200)

    """

    # Shares of a step that are tried when the whole of it does not lower the objective.
    shares: ClassVar[Vector] = np.concatenate(
        [[0.0], 0.5 ** np.arange(12, 4, -1), np.linspace(0.05, 1.0, 20)]
    )
    # Losses are smoothed over the first width to begin with, and over one smaller by at most the second factor
    # whenever the gap of the smoothed problem is below this share of the whole gap.
    first_width: ClassVar[float] = 4.0
    shrink: ClassVar[float] = 0.3
    solved_share: ClassVar[float] = 0.6
    # They widen by this factor where a step leads nowhere, and by its square where kernels are added.
    wider: ClassVar[float] = 10.0
    # Steps that lead nowhere until a fit is given up.
    most_failures: ClassVar[int] = 8

    tol: float = 1e-4
    max_iter: int = 200

    def solve(self, problem: FeatureProblem, eta: Vector, progress: Progress | None = None) -> FeatureResult:
        """Solve from kernel weights found elsewhere, which say what kernels to begin with."""
        geometry, n_kernels = problem.geometry, eta.size
        geometry.check(n_kernels)
        part = geometry_in_use(geometry, n_kernels)
        working = np.flatnonzero(eta) if isinstance(geometry, SupportsWorkingSet) else np.arange(n_kernels)
        point = problem.zero(working, part.project(eta[working]))
        log, width = _PassLog(progress), self.first_width
        for samples, goal, check_all in self._levels(problem.samples):
            level = replace(problem, samples=samples)
            if isinstance(geometry, SupportsWorkingSet):  # what it does not use it will hardly use here
                point = point.used()
            try:
                found = self._solve_level(level, part, point, goal, width, log, check_all=check_all)
            except KeyboardInterrupt:
                if log.last is None:
                    raise
                found = replace(log.last, stopped="interrupted")
            point, width = found.point, found.width
            if found.stopped == "interrupted":
                found = self._over_all_kernels(problem, found)
                break
        return FeatureResult(point, found.certificate, tuple(log.records), found.stopped)

    def _levels(self, samples: SampleBlocks) -> list[tuple[SampleBlocks, float, bool]]:
        """Return what to solve one after the other: samples, tolerance, and whether kernels may enter.

        Which kernels count is found out on few samples; more of them, and then all, start from there.
        """
        n, rough = samples.n_samples, max(self.tol, 1e-2)
        first = max(5_000, n // 64)
        few = samples.sample(first)
        more = samples.sample(n // 8) if n // 8 > first else None
        levels = [(few or samples, rough, True)] if few or rough > self.tol else []
        return [*levels, *([(more, rough, False)] if more else []), (samples, self.tol, True)]

    def _solve_level(
        self,
        problem: FeatureProblem,
        part: Geometry,
        point: FeaturePoint,
        tol: float,
        width: float,
        log: _PassLog,
        *,
        check_all: bool,
    ) -> BoundedPoint:
        """Close the gap over the kernels in use, then let others in, until that of all kernels is closed.

        ``part`` is the geometry of the kernels in use.
        """
        n_passes = 0
        while True:
            inner = replace(problem, geometry=part)
            found, used = self._descend(inner, point, 0.9 * tol, width, log, self.max_iter - n_passes)
            if not check_all or found.stopped == "interrupted":
                return found
            n_passes += used
            found = self._over_all_kernels(problem, found)
            log.add_pass(found)
            entering = found.entering(problem.geometry)
            if found.certificate.relative_gap <= tol:
                return replace(found, stopped="converged")
            if n_passes >= self.max_iter:
                return replace(found, stopped="max_iter")
            if entering.size:
                point = problem.with_kernels(found.point, entering)
            elif problem.dtype == "float32":  # rounding hides the rest
                problem, point = replace(problem, dtype="float64"), found.point
            else:
                return replace(found, stopped="rounding" if found.stopped == "converged" else found.stopped)
            width = min(self.first_width, self.wider**2 * found.width)

    def _descend(
        self,
        problem: FeatureProblem,
        point: FeaturePoint,
        tol: float,
        width: float,
        log: _PassLog,
        max_passes: int,
    ) -> tuple[BoundedPoint, int]:
        """Close the gap over the kernels of the point, as far as passes in working precision can.

        Returns the best point found and how many passes it took.
        """
        before: FeaturePoint | None = None
        best: BoundedPoint | None = None
        # The last minimiser of smoothed losses, with its sums: where to go on from with less of a change of width.
        solved: tuple[BoundedPoint, PassSums] | None = None
        least, n_failures = self.shrink, 0
        for number in range(1, max_passes + 1):
            shares = np.ones(1) if before is None else self.shares
            try:
                sums = problem.pass_over(point, before, shares, width, want_hessian=True)
                if before is not None:
                    share = problem.best_share(before, point, sums.smoothed, shares)
                    if share == 0.0:
                        n_failures += 1
                        if n_failures > self.most_failures:
                            return replace(
                                best or problem.bounds(point, sums, width), stopped="stalled"
                            ), number
                        if solved is None:
                            point, before, width = before, None, self.wider * width
                        else:
                            least = least**0.5
                            before, width = solved[0].point, least * solved[0].width
                            point = problem.model_minimiser(before, solved[1], 1.0 / least)
                        continue
                    if share < 1.0:  # the whole step leads uphill: look again from where it leads down to
                        point, before = before.towards(point, share), None
                        continue
                found = problem.bounds(point, sums, width)
                log.add_pass(found)
            except KeyboardInterrupt:
                if best is None:
                    raise
                return replace(best, stopped="interrupted"), number
            if best is None or found.certificate.gap < best.certificate.gap:
                best = found
            if found.certificate.relative_gap <= tol:
                return replace(found, stopped="converged"), number
            shrink = 1.0
            if found.smoothed.gap <= self.solved_share * found.certificate.gap:
                shrink, solved = self._shrink(found, tol, least), (found, sums)
            before, point, width = point, problem.model_minimiser(point, sums, 1.0 / shrink), shrink * width
        return replace(best or problem.bounds(point, sums, width), stopped="max_iter"), max_passes

    def _shrink(self, found: BoundedPoint, tol: float, least: float) -> float:
        """Return by what factor to shrink the width.

        The part of the gap that smoothing makes falls at least in proportion to it.
        """
        wanted = 0.5 * tol * abs(found.certificate.upper)
        part = found.certificate.gap - found.smoothed.gap
        return float(np.clip(wanted / part if part > 0.0 else 1.0, least, max(least, 0.5)))

    def _over_all_kernels(self, problem: FeatureProblem, found: BoundedPoint) -> BoundedPoint:
        """Return the bounds over all kernels, in double precision."""
        every = range(len(problem.maps.transforms))
        exact = replace(problem, dtype="float64")
        sums = exact.pass_over(found.point, None, np.ones(1), found.width, which=every)
        return replace(exact.bounds(found.point, sums, found.width, every), stopped=found.stopped)


def geometry_in_use(geometry: Geometry, n_kernels: int) -> Geometry:
    """Return the weight set of the kernels in use, out of so many."""
    return geometry.restricted(n_kernels) if isinstance(geometry, SupportsWorkingSet) else geometry


def pass_dtype(tol: float, n_samples: int) -> str:
    """Return the type that passes compute in, up to the last: float32 is faster, where that counts."""
    return "float32" if tol >= 1e-5 and n_samples > MANY else "float64"


def first_weights(grams: GramStack, Y: Matrix, weight: Vector, learner: Any, geometry: Geometry) -> Vector:
    """Return the weights that solve the problem on a few samples with the kernels themselves."""
    rows = representative_rows(Y, np.flatnonzero(weight > 0.0), N_FIRST)
    targets = Y[rows] if Y.shape[1] > 1 else Y[rows, 0]
    problem = Problem(grams.sample(rows), targets, learner, geometry, np.ones(rows.size))
    n_kernels = grams.n_kernels
    try:
        return replace(choose_solver(geometry, n_kernels, 1e-2), tol=1e-2).run(problem).eta
    except ValueError:  # too few samples of a class: any weights will do to begin with
        return np.asarray(geometry.start(n_kernels))


class _PassLog(RecordLog):
    """The records of all passes, and what the last one found."""

    last: BoundedPoint | None = None

    def add_pass(self, found: BoundedPoint) -> None:
        self.last = found
        self.add(found.certificate, int(np.count_nonzero(found.point.eta)))
