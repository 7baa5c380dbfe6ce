"""Kernels that are never stored: coefficients move in blocks of samples, weights between the blocks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.geometry.base import Geometry, SupportsWorkingSet, fenchel_young_gap
from kernelweave.gram.memory import block_samples
from kernelweave.gram.streamed import StreamedGrams
from kernelweave.learners.program import DualProgram
from kernelweave.learners.ridge import LandmarkInverse, Ridge, RidgeSolution
from kernelweave.learners.solution import InnerSolution, approximate_hessian
from kernelweave.solvers.base import Solver, require
from kernelweave.solvers.block_descent import block_norms
from kernelweave.solvers.certificate import Certificate, DualPoint, LowerBound
from kernelweave.solvers.newton import Newton
from kernelweave.solvers.problem import (
    OuterState,
    Problem,
    Progress,
    Record,
    Result,
    WarmStart,
    energies_of,
)
from kernelweave.solvers.warm_start import representative_rows


@dataclass
class StreamedDescent(Solver):
    r"""Descent on kernels of which only a block of pairs exists at any time.

    .. math:: f = \sum_m \eta_m G_m, \qquad G_m = K_m v \text{ for the kernels in use}

    Samples come in levels: a thousand are solved as a whole, four times as many start from their solution, and
    so on to all. On a level, the coefficients of a block of samples are solved for while the others stay, and
    one pass over the pairs of the block with all samples brings the products G_m up to date. Weights move
    between blocks, which costs no pass: f is linear in them. At the end one pass over the pairs of support
    vectors measures the energies of all kernels. Kernels that would lower the objective enter; if there are
    none the gap is that of all kernels.

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most blocks on all samples.
    coarse_solver : Solver or None, default=None
        Solves the first level; None is Newton.
    n_coarse : int, default=1000
        Samples of the first level.
    growth : float, default=4.0
        How many times larger a level is than the one before, at most.

    Notes
    -----
    For learners whose dual is a quadratic program over a box, which SMO solves on every block. Memory grows
    with the number of samples, and with the square of a block.
    Differs from the paper: it is in none. Coefficients move as in [Joachims99], a block at a time.

    Examples
    --------
    >>> from kernelweave.solvers import StreamedDescent
    >>> StreamedDescent(tol=1e-3)
    StreamedDescent(tol=0.001, max_iter=None, coarse_solver=None, n_coarse=1000, growth=4.0)

    """

    default_max_iter: ClassVar[int] = 1000
    # A level before the last is left at this gap: its solution is a start and no more.
    rough_tol: ClassVar[float] = 3e-3
    # Kernels with this share of the energy of one in use may come into use on a larger level.
    near: ClassVar[float] = 0.9
    coarse_solver: Solver | None = None
    n_coarse: int = 1000
    growth: float = 4.0

    def iterate(self, state: OuterState, eta: Vector) -> str | None:
        raise NotImplementedError("StreamedDescent needs kernels that are streamed: see run.")

    def run(
        self, problem: Problem, start: WarmStart | None = None, progress: Progress | None = None
    ) -> Result:
        require(self, problem.geometry)
        problem.geometry.check(problem.grams.n_kernels)
        log = _Log(progress)
        interrupted = False
        if start is None or start.coef is None:
            start, interrupted = self._coarse_to_fine(problem, log)
        else:
            start = WarmStart(start.eta, _feasible(problem, start.coef))
        state = _State.of(problem, start)
        return self._solve_all(problem, state, log, interrupted)

    # -- from few samples to all

    def _coarse_to_fine(self, problem: Problem, log: _Log) -> tuple[WarmStart, bool]:
        """Return weights, and coefficients of all samples, from solutions on fewer samples.

        The second item is whether that was interrupted: then most coefficients are zero.
        """
        levels = self._levels(problem)
        start, rows = WarmStart(problem.geometry.start(problem.grams.n_kernels)), levels[0]
        try:
            start = self._solve_coarsest(problem, rows)
            for larger in levels[1:]:
                part = _restricted(problem, larger)
                start = _seeded(part, start, np.searchsorted(larger, rows))
                rows = larger
                if rows.size < problem.grams.n_samples:
                    state = _State.of(part, start)
                    self._descend(state, self.rough_tol, self.default_max_iter, log)
                    start = WarmStart(state.full_eta(self.near), state.coef)
        except KeyboardInterrupt:
            return WarmStart(start.eta, _spread(start.coef, rows, problem)), True
        return start, False

    def _levels(self, problem: Problem) -> list[Indices]:
        """Return nested samples, from few to all; those without weight do not count."""
        n, n_kernels = problem.grams.n_samples, problem.grams.n_kernels
        counted = np.arange(n) if problem.weight is None else np.flatnonzero(problem.weight > 0.0)
        # All kernels of the first level are held: they take no more than 128 MB.
        smallest = min(self.n_coarse, int((2.0**25 / n_kernels) ** 0.5), counted.size)
        n_steps = max(1, int(np.ceil(np.log(counted.size / (1.2 * smallest)) / np.log(self.growth))))
        ratio = (counted.size / smallest) ** (1.0 / n_steps)
        sizes = [round(smallest * ratio**step) for step in range(1, n_steps)]
        levels = [np.arange(n)]
        rows = counted
        for size in (*reversed(sizes), smallest):
            rows = representative_rows(problem.y, rows, size)
            levels.insert(0, rows)
        return levels

    def _solve_coarsest(self, problem: Problem, rows: Indices) -> WarmStart:
        """Solve on a few samples, with all kernels held; where that fails, start from even weights."""
        part = replace(_restricted(problem, rows), grams=problem.grams.sample(rows))
        solver = Newton() if self.coarse_solver is None else self.coarse_solver
        even = WarmStart(problem.geometry.start(problem.grams.n_kernels), np.zeros(part.y.shape))
        try:
            for column in part.y.reshape(rows.size, -1).T:
                part.learner.check(column, np.ones(rows.size) if part.weight is None else part.weight)
            found = replace(solver, tol=self.rough_tol).run(part)
        except ValueError:  # too few samples of a class, or a kernel that is none: all samples will say so
            return even
        if found.stopped == "interrupted":
            raise KeyboardInterrupt
        h = part.grams.energies(found.inner.coef)
        return WarmStart(_with_near(problem.geometry, found.eta, h, self.near), found.inner.coef)

    # -- on all samples

    def _solve_all(self, problem: Problem, state: _State, log: _Log, interrupted: bool) -> Result:
        """Solve with the kernels in use, then let others in, until the gap over all kernels is closed."""
        tol = 0.9 * self.gap_tol
        blocks_left = self.default_max_iter if self.max_iter is None else self.max_iter
        log.counts = True
        while True:
            n_before = len(log.records)
            stopped = self._descend(state, tol, 0 if interrupted else blocks_left, log)
            blocks_left -= len(log.records) - n_before - 1
            proof, certificate = state.proof_over_all(problem)
            log.replace_last(certificate)
            if certificate.relative_gap <= self.gap_tol:
                stopped = "converged"
                break
            if stopped != "converged":
                break
            entering = state.entering(proof.h)
            if entering.size:
                state.let_in(problem, entering)
            elif tol > 0.1 * self.gap_tol:  # what is left of the gap is in the kernels in use
                tol *= 0.3
            else:
                stopped = "rounding"
                break
        best = state.best
        assert best is not None
        eta = np.zeros(problem.grams.n_kernels)
        eta[best.working] = best.eta
        stopped = "interrupted" if interrupted else stopped
        return Result(eta, best.inner, certificate, proof, tuple(log.records), stopped)

    def _descend(self, state: _State, tol: float, max_blocks: int, log: _Log) -> str:
        """Close the gap over the kernels in use; return why it ended."""
        steps = _GradientSteps() if state.is_linear_system else _BlockSteps(block_samples(state.n_samples))
        n_blocks, gaps = 0, list[float]()
        try:
            while True:
                # 1. Bounds, in O(n).
                state.measure()
                log.add(state.certificate, int(np.count_nonzero(state.eta)))
                gaps.append(state.certificate.relative_gap)
                if gaps[-1] <= tol:
                    return "converged"
                if n_blocks >= max_blocks:
                    return "max_iter"
                if len(gaps) > steps.patience and gaps[-1] > 0.9 * gaps[-1 - steps.patience]:
                    return "stalled"
                # 2. Weights, where more of the gap is theirs: f follows without a pass.
                if state.weights_dominate(tol, steps.inner_share):
                    state.move_weights(steps.hessian(state))
                # 3. Coefficients: those of a block, and one pass over its pairs with all samples.
                steps.move(state)
                n_blocks += 1
        except KeyboardInterrupt:
            if state.best is None:
                state.measure()
                log.records.append(Record(state.certificate, log.seconds, int(np.count_nonzero(state.eta))))
            return "interrupted"


@dataclass(frozen=True)
class _Best:
    """The iterate with the lowest objective: kernels in use, their weights, and the learner's solution."""

    working: Indices
    eta: Vector
    inner: InnerSolution
    upper: float


@dataclass
class _State:
    """Weights and coefficients on some samples, with the products that bounds are drawn from.

    ``working`` are the kernels in use, ``grams`` and ``geometry`` belong to them, G are their products K_m V.
    """

    problem: Problem
    working: Indices
    grams: StreamedGrams
    geometry: Geometry
    eta: Vector
    coef: AnyArray
    G: AnyArray
    best: _Best | None = None
    inner: InnerSolution | None = None
    damping: float = 0.0
    _upper: float = np.inf
    _upper_before: float = np.inf
    _lower: LowerBound = field(init=False)

    def __post_init__(self) -> None:
        self._lower = LowerBound(self.geometry)

    @classmethod
    def of(cls, problem: Problem, start: WarmStart) -> _State:
        """Return the state at weights and coefficients; kernels without weight are not in use."""
        geometry, grams = problem.geometry, problem.grams
        assert isinstance(grams, StreamedGrams)
        assert start.coef is not None
        working = np.arange(grams.n_kernels)
        if isinstance(geometry, SupportsWorkingSet):
            enough = max(1, geometry.min_active(grams.n_kernels))
            working = np.sort(
                np.argsort(-start.eta, kind="stable")[: max(enough, np.count_nonzero(start.eta))]
            )
            geometry, grams = geometry.restricted(grams.n_kernels), grams.only(working)
        eta = start.eta[working]
        if not np.isfinite(geometry.value(eta)):
            eta = geometry.project(eta)
        coef = start.coef
        return cls(problem, working, grams, geometry, eta, coef, grams.matvecs(coef))

    # -- what is known at the present point

    @property
    def n_samples(self) -> int:
        return self.grams.n_samples

    @property
    def is_linear_system(self) -> bool:
        """Whether the learner's problem has no inequalities: its coefficients move all at once."""
        return hasattr(self.problem.learner, "ridge")

    @property
    def f(self) -> AnyArray:
        """The decision values K(eta) V."""
        return np.asarray(np.tensordot(self.eta, self.G, 1))

    @property
    def h(self) -> Vector:
        """The energies of the kernels in use."""
        return energies_of(self.coef, self.G)

    @property
    def certificate(self) -> Certificate:
        """The bounds over the kernels in use."""
        assert self.best is not None
        return Certificate.enclosing(self.best.upper, self._lower.value)

    def measure(self) -> None:
        """Bound the optimum over the kernels in use from both sides at the present point."""
        p, errors = self.problem, self.grams.errors
        inner = p.learner.measure(self.f, self.coef, p.y, p.weight)
        upper = self.geometry.value(self.eta) + inner.primal + inner.rounding_allowance(self.eta, errors)
        if not np.isfinite(upper):
            raise ValueError(
                "The decision values are not finite: a kernel is not, on some samples; standardise the columns."
            )
        self._lower.add(DualPoint(self.coef, inner.linear, self.h + inner.energy_allowance(errors)))
        self.inner, self._upper = inner, upper
        if self.best is None or upper < self.best.upper:
            self.best = _Best(self.working, self.eta, inner, upper)

    # -- moves

    def weights_dominate(self, tol: float, inner_share: float) -> bool:
        """Whether the weights account for most of the gap, and the coefficients are good enough to tell."""
        assert self.inner is not None
        size = abs(self._upper)
        weights_gap = fenchel_young_gap(self.geometry, self.eta, self.h)
        matters = weights_gap > max(0.3 * tol * size, self.inner.gap / inner_share)
        return matters and self.inner.gap < 0.03 * size

    def move_weights(self, H: Matrix | None) -> None:
        """Step to the minimiser of a quadratic model, or to the closed form where that settles quickly."""
        if self._upper > self._upper_before:  # the last step led uphill: trust the model less
            self.damping = max(4.0 * self.damping, 1e-3)
        elif self.damping:
            self.damping *= 0.25
        self._upper_before = self._upper
        if H is None or self.geometry.fast_block_update:
            self.eta = self.geometry.reweight(block_norms(self.eta, self.h))
            return
        if self.damping:
            H = H + self.damping * float(np.trace(H)) / H.shape[0] * np.eye(H.shape[0])
        self.eta = self.geometry.model_step(self.eta, self.h, H)

    def move_coefficients(self, block: Indices, change: AnyArray) -> None:
        """Add to the coefficients of a block, and bring the products up to date: one pass over its pairs."""
        moved = np.flatnonzero(change.reshape(block.size, -1).any(axis=1))
        self.coef = self.coef.copy()  # the best point so far may be this one
        self.coef[block[moved]] += change[moved]
        self.G += self.grams.products(block[moved], change[moved])

    def move_along(self, direction: AnyArray, products: AnyArray, lengths: Vector) -> None:
        """Add multiples of a direction, one for each column, to the coefficients; its products are known."""
        self.coef = self.coef + lengths.reshape(self.coef.shape[1:]) * direction
        self.G += lengths.reshape(self.coef.shape[1:]) * products

    # -- kernels that are not in use

    def proof_over_all(self, problem: Problem) -> tuple[DualPoint, Certificate]:
        """Return the best dual point with the energies of all kernels, and the certificate it gives."""
        point, best, p = self._lower.point, self.best, problem
        assert point is not None
        assert best is not None
        if self.working.size < p.grams.n_kernels or point.is_mixture:
            inner = p.learner.measure(np.zeros_like(point.coef), point.coef, p.y, p.weight)
            h = p.grams.energies(point.coef) + inner.energy_allowance(p.grams.errors)
            point = DualPoint(point.coef, inner.linear, h)
        return point, Certificate.enclosing(best.upper, point.value(p.geometry))

    def entering(self, h: Vector) -> Indices:
        """Return the kernels outside that have as much energy as one in use, at most eight at a time."""
        outside = np.setdiff1d(np.arange(h.size), self.working)
        used = self.working[self.eta > 0.0]
        steep = outside[h[outside] > (1.0 - 1e-3) * h[used].min(initial=np.inf)]
        return np.sort(steep[np.argsort(-h[steep])][:8])

    def let_in(self, problem: Problem, entering: Indices) -> None:
        """Add kernels to those in use, with weight zero."""
        grams = problem.grams
        assert isinstance(grams, StreamedGrams)
        G = np.concatenate([self.G, grams.only(entering).matvecs(self.coef)])
        working = np.concatenate([self.working, entering])
        order = np.argsort(working)
        self.working, self.G = working[order], G[order]
        self.eta = np.concatenate([self.eta, np.zeros(entering.size)])[order]
        self.grams = grams.only(self.working)
        self._lower = LowerBound(self.geometry)

    def full_eta(self, near: float) -> Vector:
        """Return the weights of all kernels, those nearly in use with a trace of weight."""
        eta = np.zeros(self.problem.grams.n_kernels)
        eta[self.working] = _with_near(self.geometry, self.eta, self.h, near)
        return eta


class _BlockSteps:
    """Moves the coefficients of a block of samples to their optimum while the others stay.

    A block holds the steepest ways up and down, a quarter each, and free support vectors drawn at random: of
    the steepest alone many more blocks would be needed, since moving them moves the free ones.
    """

    n_gradient_steps = 6
    # Weights move once the coefficients' part of the gap is below this many times that of the weights ...
    inner_share = 2.0
    # ... and it gives up where this many blocks leave 90 % of the gap.
    patience = 25

    def __init__(self, size: int) -> None:
        self.size = size
        self._rng = np.random.default_rng(0)
        self._block: Indices | None = None
        self._K: AnyArray | None = None
        self._eagerness = 1.0

    def move(self, state: _State) -> None:
        """Move the coefficients of a block to their optimum."""
        assert state.inner is not None
        f, coef = state.f.reshape(state.n_samples, -1), state.coef.reshape(state.n_samples, -1)
        programs = [program for program, _ in state.inner.parts]
        violations = [program.violations(v, fc) for program, v, fc in zip(programs, coef.T, f.T, strict=True)]
        block = self._choose(programs, violations, coef)
        K = self._buffer(block.size, state.grams.dtype)
        K = state.grams.combined_block(state.eta, block, block, K)
        change = np.empty((block.size, coef.shape[1]))
        for c, (program, (up, down)) in enumerate(zip(programs, violations, strict=True)):
            # SMO leaves violations that add up to a part of the gap, and less than there are.
            total = float(np.abs(coef[:, c]).sum())
            allowed = 0.15 * state.inner.gap / (total * coef.shape[1]) if total else np.inf
            worst = max(float(up[block].max() + down[block].max()), 0.0)
            part = program.on_block(block, K, coef[:, c], f[:, c])
            own = coef[block, c]
            moved, _, _ = part.descend(K, own, self._eagerness * min(allowed, 0.1 * worst))
            change[:, c] = moved - own
        self._block, self._K = block, K
        self._eagerness = 0.1 * self._eagerness if not change.any() else 1.0
        state.move_coefficients(block, change.reshape(block.size, *state.coef.shape[1:]))

    def hessian(self, state: _State) -> Matrix | None:
        """Return the curvature of the optimal value in the weights, as the last block shows it."""
        if self._block is None or self._K is None:
            return None
        assert state.inner is not None
        coef = state.coef.reshape(state.n_samples, -1)
        G = state.G.reshape(*state.G.shape[:2], -1)
        H = np.zeros((state.eta.size, state.eta.size))
        for c, (program, _) in enumerate(state.inner.parts):
            inside = np.isin(self._block, program.free(coef[:, c]), assume_unique=True)
            free = self._block[inside]
            if free.size:
                K = self._K if inside.all() else self._K[np.ix_(inside, inside)]
                E = (program.group[free, None] == np.arange(program.sums.size)).astype(np.float64)
                E = E[:, E.any(axis=0)]
                H += approximate_hessian(K, program.d[free], G[:, free, c].T, E, self.n_gradient_steps)
        return H if H.any() else None

    def _choose(
        self, programs: list[DualProgram], violations: list[tuple[Vector, Vector]], coef: Matrix
    ) -> Indices:
        n = coef.shape[0]
        if self.size >= n:
            return np.arange(n)
        chosen, free = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        n_groups = sum(program.sums.size for program in programs)
        each = max(1, self.size // (4 * n_groups))
        for program, v, sides in zip(programs, coef.T, violations, strict=True):
            free[program.free(v)] = True
            for g in range(program.sums.size):
                for side in sides:
                    able = np.flatnonzero((program.group == g) & np.isfinite(side))
                    if able.size > each:
                        able = able[np.argpartition(-side[able], each)[:each]]
                    chosen[able] = True
        others = np.flatnonzero(free & ~chosen)
        room = self.size - int(np.count_nonzero(chosen))
        chosen[self._rng.permutation(others)[: max(room, 0)]] = True
        return np.flatnonzero(chosen)

    def _buffer(self, size: int, dtype: np.dtype[np.generic]) -> AnyArray:
        """Return memory for the kernel of a block; that of the last one is used again."""
        if self._K is not None and self._K.shape[0] == size:
            return self._K
        self._K = None
        return np.empty((size, size), dtype=dtype)


class _GradientSteps:
    """Moves all coefficients of a linear system along conjugate gradients.

    They are preconditioned by the kernel's columns at a few landmarks, which leaves ten or twenty steps where
    hundreds would be needed. The directions belong to one kernel: they start afresh when the weights move.
    """

    n_landmarks = 1000
    # As in _BlockSteps; new weights cost the directions, and the gap does not fall with every step.
    inner_share = 0.2
    patience = 200

    def __init__(self) -> None:
        self._eta = np.zeros(0)
        self._inverse: LandmarkInverse | None = None
        self._direction: Matrix | None = None
        self._slopes = np.zeros(0)

    def move(self, state: _State) -> None:
        """Take one step."""
        ridge, inverse = self._at(state)
        n = state.n_samples
        residual = ridge.residual(state.coef.reshape(n, -1), state.f.reshape(n, -1))
        descent = inverse.apply(residual)
        slopes = np.sum(residual * descent, axis=0)
        if self._direction is not None:
            descent += self._direction * np.divide(
                slopes, self._slopes, out=np.zeros_like(slopes), where=self._slopes > 0.0
            )
        self._direction, self._slopes = descent, slopes
        shaped = descent.reshape(state.coef.shape)
        products = state.grams.matvecs(shaped)
        used = ridge.used
        Kp = np.tensordot(state.eta, products, 1).reshape(n, -1)
        curvature = np.sum(descent * Kp, axis=0) + ridge.d[used] @ descent[used] ** 2
        lengths = np.divide(
            np.sum(residual * descent, axis=0), curvature, out=np.zeros_like(slopes), where=curvature > 0.0
        )
        state.move_along(shaped, products, lengths)

    def hessian(self, state: _State) -> Matrix:
        """Return the curvature of the optimal value in the weights, as the landmarks show it."""
        _, inverse = self._at(state)
        n, M = state.n_samples, state.eta.size
        U = np.moveaxis(state.G.reshape(M, n, -1), 0, 1)  # (n, M, columns)
        H = np.tensordot(U, inverse.apply(U.reshape(n, -1)).reshape(U.shape), axes=([0, 2], [0, 2]))
        return np.asarray(0.5 * (H + H.T))

    def _at(self, state: _State) -> tuple[Ridge, LandmarkInverse]:
        """Return the system, and its approximate inverse at the present weights."""
        inner = state.inner
        assert isinstance(inner, RidgeSolution)
        ridge = inner.ridge
        assert ridge is not None
        if self._inverse is None or not np.array_equal(self._eta, state.eta):
            used = ridge.used
            landmarks = used[np.linspace(0, used.size - 1, min(used.size, self.n_landmarks)).astype(np.intp)]
            K = state.grams.combined_block(state.eta, np.arange(state.n_samples), landmarks)
            self._inverse = LandmarkInverse(K, landmarks, ridge.d, ridge.has_bias)
            self._eta, self._direction = state.eta, None
        return ridge, self._inverse


@dataclass
class _Log:
    """What is reported on the way; records of levels before the last are not kept."""

    progress: Progress | None
    records: list[Record] = field(default_factory=list)
    counts: bool = False
    _began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def add(self, certificate: Certificate, n_active: int) -> None:
        record = Record(certificate, self.seconds, n_active)
        if self.counts:
            # Of the kernels in use only, until all energies are measured: nothing is known from below.
            self.records.append(replace(record, certificate=Certificate(certificate.upper, -np.inf)))
        if self.progress is not None:
            self.progress(record)

    def replace_last(self, certificate: Certificate) -> None:
        """Let the last record have the bounds over all kernels."""
        self.records[-1] = replace(self.records[-1], certificate=certificate)


def _restricted(problem: Problem, rows: Indices) -> Problem:
    """Return the problem on some samples; prices of errors stay as they are."""
    grams = problem.grams
    assert isinstance(grams, StreamedGrams)
    if rows.size == grams.n_samples:
        return problem
    weight = None if problem.weight is None else problem.weight[rows]
    return replace(problem, grams=grams.at(rows), y=problem.y[rows], weight=weight)


def _seeded(problem: Problem, start: WarmStart, rows: Indices) -> WarmStart:
    """Return a start on all samples of a problem, given a solution on those at ``rows``."""
    p, grams = problem, problem.grams
    assert isinstance(grams, StreamedGrams)
    coef = _spread(start.coef, rows, problem)
    if hasattr(p.learner, "ridge"):  # a linear system is as well begun by the coefficients themselves
        return WarmStart(start.eta, coef)
    f = grams.matvec(start.eta, coef)
    parts = p.learner.measure(f, coef, p.y, p.weight).parts
    columns = [program.suggested(fc) for (program, _), fc in zip(parts, f.reshape(len(f), -1).T, strict=True)]
    return WarmStart(start.eta, np.column_stack(columns).reshape(p.y.shape))


def _feasible(problem: Problem, coef: AnyArray) -> AnyArray:
    """Return feasible coefficients near those of a similar problem, whose prices may differ."""
    p = problem
    parts = p.learner.measure(np.zeros_like(coef), coef, p.y, p.weight).parts
    columns = coef.reshape(len(coef), -1).T
    if not parts:  # a linear system takes any
        return coef
    found = [program.feasible(v) for (program, _), v in zip(parts, columns, strict=True)]
    return np.column_stack(found).reshape(coef.shape)


def _spread(coef: AnyArray | None, rows: Indices, problem: Problem) -> AnyArray:
    """Return coefficients of some samples as those of all, zero elsewhere."""
    out = np.zeros(problem.y.shape)
    if coef is not None:
        out[rows] = coef
    return out


def _with_near(geometry: Geometry, eta: Vector, h: Vector, near: float) -> Vector:
    """Return the weights with a trace on kernels that have nearly the energy of one in use.

    Which kernels are in use is told by their weights being positive; more samples may let these in.
    """
    if not isinstance(geometry, SupportsWorkingSet):
        return eta
    close = (eta == 0.0) & (h > near * h[eta > 0.0].min(initial=np.inf))
    return np.where(close, 1e-12, eta)
