"""Kernels that are never stored: coefficients move in blocks of samples, weights between the blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.errors import IncompatiblePartsError
from kernelweave.gram.streamed import StreamedGrams
from kernelweave.learners.program import DualProgram
from kernelweave.solvers.base import Solver, require
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.coefficient_steps import coefficient_steps
from kernelweave.solvers.newton import Newton
from kernelweave.solvers.problem import Problem, Progress, RecordLog, Result, WarmStart
from kernelweave.solvers.streamed_state import StreamedState, with_near_kernels
from kernelweave.solvers.warm_start import representative_rows, solve_few


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
    block_size : int or None, default=None
        How many samples' coefficients move at a time; None grows with the root of the number of samples.

    Notes
    -----
    For learners whose dual is a quadratic program over a box, which SMO solves on every block. Memory grows
    with the number of samples, and with the square of a block.
    Differs from the paper: it is in none. Coefficients move as in [Joachims99], a block at a time.

    Examples
    --------
    >>> from kernelweave.solvers import StreamedDescent
    >>> StreamedDescent(tol=1e-3)
    StreamedDescent(tol=0.001, max_iter=None, coarse_solver=None, n_coarse=1000, growth=4.0, block_size=None)

    """

    default_max_iter: ClassVar[int] = 1000
    # A level before the last is left at this gap: its solution is a start and no more.
    rough_tol: ClassVar[float] = 3e-3
    # Kernels with this share of the energy of one in use may come into use on a larger level.
    near: ClassVar[float] = 0.9
    # What the tolerance over the kernels in use shrinks by where it is met and the gap over all is still open.
    tighter: ClassVar[float] = 0.3
    coarse_solver: Solver | None = None
    n_coarse: int = 1000
    growth: float = 4.0
    block_size: int | None = None

    def run(
        self, problem: Problem, start: WarmStart | None = None, progress: Progress | None = None
    ) -> Result:
        require(self, problem.geometry)
        if not isinstance(problem.grams, StreamedGrams):
            raise IncompatiblePartsError(
                f"StreamedDescent needs kernels that are streamed, as those of more than 2,000 samples are; these are "
                f"{problem.grams.storage}. Leave the solver out, or name another: Newton()."
            )
        problem.geometry.check(problem.grams.n_kernels)
        log, interrupted = _StreamLog(progress), False
        if start is None or start.coef is None:
            start, interrupted = self._coarse_to_fine(problem, log)
        else:
            start = WarmStart(start.eta, _feasible(problem, start.coef))
        log.records.clear()  # those of levels before the last
        state = StreamedState.at(problem, start)
        return self._solve_all(state, log, interrupted)

    # -- from few samples to all

    def _coarse_to_fine(self, problem: Problem, log: _StreamLog) -> tuple[WarmStart, bool]:
        """Return weights, and coefficients of all samples, from solutions on fewer samples.

        The second item is whether that was interrupted: then most coefficients are zero.
        """
        levels = self._levels(problem)
        start, rows = WarmStart(problem.geometry.start(problem.grams.n_kernels)), levels[0]
        try:
            start = self._solve_coarsest(problem, rows)
            for larger in levels[1:]:
                part = _restricted(problem, larger)
                start, rows = _seeded(part, start, np.searchsorted(larger, rows)), larger
                if rows.size < problem.grams.n_samples:
                    state = StreamedState.at(part, start)
                    stopped, _ = self._descend(state, self.rough_tol, self.default_max_iter, log)
                    start = state.best_start(self.near)
                    if stopped == "interrupted":
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            return WarmStart(start.eta, _feasible(problem, _spread(start.coef, rows, problem))), True
        return start, False

    def _levels(self, problem: Problem) -> list[Indices]:
        """Return nested samples, from few to all; those without weight do not count."""
        n, n_kernels = problem.grams.n_samples, problem.grams.n_kernels
        counted = np.arange(n) if problem.weight is None else np.flatnonzero(problem.weight > 0.0)
        # All kernels of the first level are held: they take no more than 128 MB.
        smallest = min(self.n_coarse, int((2.0**25 / n_kernels) ** 0.5), counted.size)
        levels = [np.arange(n)]
        rows = counted
        for size in reversed(level_sizes(counted.size, smallest, self.growth)):
            rows = representative_rows(problem.y, rows, size)
            levels.insert(0, rows)
        return levels

    def _solve_coarsest(self, problem: Problem, rows: Indices) -> WarmStart:
        """Solve on a few samples, with all kernels held; where that fails, start from even weights."""
        part = replace(_restricted(problem, rows), grams=problem.grams.sample(rows))
        solver = Newton() if self.coarse_solver is None else self.coarse_solver
        found = solve_few(part, replace(solver, tol=self.rough_tol))
        if found is None:
            return WarmStart(problem.geometry.start(problem.grams.n_kernels), np.zeros(part.y.shape))
        h = part.grams.energies(found.inner.coef)
        return WarmStart(with_near_kernels(problem.geometry, found.eta, h, self.near), found.inner.coef)

    # -- on all samples

    def _solve_all(self, state: StreamedState, log: _StreamLog, interrupted: bool) -> Result:
        """Solve with the kernels in use, then let others in, until the gap over all kernels is closed."""
        tol = 0.9 * self.gap_tol  # over the kernels in use; the rest is for the others, and for rounding
        blocks_left = self.default_max_iter if self.max_iter is None else self.max_iter
        while True:
            stopped, n_blocks = self._descend(state, tol, 0 if interrupted else blocks_left, log)
            blocks_left -= n_blocks
            proof, certificate = state.proof_over_all()
            log.set_last(certificate)
            if certificate.relative_gap <= self.gap_tol:
                stopped = "converged"
                break
            if stopped not in ("converged", "vanishing", "stalled"):
                break
            entering = state.entering(proof.h)
            if entering.size:
                state.add_kernels(entering)
            elif stopped != "converged":
                break
            elif tol > 0.1 * self.gap_tol:  # what is left of the gap is in the kernels in use
                tol *= self.tighter
            else:
                stopped = "rounding"
                break
        best, eta = state.best, np.zeros(state.problem.grams.n_kernels)
        eta[best.working] = best.eta
        stopped = "interrupted" if interrupted else stopped
        return Result(eta, best.inner, certificate, proof, tuple(log.records), stopped)

    def _descend(self, state: StreamedState, tol: float, max_blocks: int, log: _StreamLog) -> tuple[str, int]:
        """Close the gap over the kernels in use; return why it ended, and after how many blocks."""
        # Of the gap itself: it may fall by orders of magnitude while its share of the objective is about one.
        steps, gaps, duals = coefficient_steps(state, self.block_size), list[float](), list[float]()
        try:
            while True:
                log.add_state(state)
                gaps.append(state.certificate.gap)
                duals.append(state.inner.dual)
                if state.certificate.relative_gap <= tol:
                    return "converged", len(gaps) - 1
                if state.vanishes:
                    return "vanishing", len(gaps) - 1
                if len(gaps) > max_blocks:
                    return "max_iter", max_blocks
                if len(gaps) > steps.patience:
                    gap, dual = gaps[-1 - steps.patience], duals[-1 - steps.patience]
                    # Small blocks may be on their way, far from where the gap tells.
                    if gaps[-1] > 0.9 * gap and duals[-1] - dual <= 0.01 * abs(dual):
                        return "stalled", len(gaps) - 1
                # 1. Weights, where more of the gap is theirs: f follows without a pass.
                if state.weights_dominate(tol, steps.inner_share):
                    state.move_weights(steps.hessian(state))
                # In single precision a block may lead to infinity.
                with np.errstate(over="ignore", invalid="ignore"):
                    # 2. Coefficients: those of a block, and one pass over its pairs with all samples.
                    steps.move(state)
                    # 3. Bounds, in O(n).
                    state.measure()
                if state.is_lost:
                    return "rounding", len(gaps)
        except KeyboardInterrupt:
            return "interrupted", max(len(gaps) - 1, 0)


def level_sizes(n: int, smallest: int, growth: float) -> list[int]:
    """Return sizes of levels below n, in equal ratios from the smallest on.

    The ratio is at most about ``growth``: with one level it may be a fifth more, which costs less than another.

    Examples
    --------
    >>> level_sizes(4_500, 1_000, 4.0)
    [1000]
    >>> level_sizes(20_000, 1_000, 4.0)
    [1000, 2714, 7368]

    """
    n_levels = max(1, int(np.ceil(np.log(n / (1.2 * smallest)) / np.log(growth))))
    ratio = (n / smallest) ** (1.0 / n_levels)
    return [round(smallest * ratio**step) for step in range(n_levels)]


class _StreamLog(RecordLog):
    """Bounds on the way are those of the kernels in use: until all energies are measured, no lower one is kept."""

    def add_state(self, state: StreamedState) -> None:
        self.add(state.certificate, int(np.count_nonzero(state.eta)))
        self.set_last(Certificate(state.certificate.upper, -np.inf))

    def set_last(self, certificate: Certificate) -> None:
        """Let the last record have these bounds."""
        self.records[-1] = replace(self.records[-1], certificate=certificate)


def _restricted(problem: Problem, rows: Indices) -> Problem:
    """Return the problem on some samples; prices of errors stay as they are."""
    grams = problem.grams
    assert isinstance(grams, StreamedGrams)
    if rows.size == grams.n_samples:
        return problem
    weight = None if problem.weight is None else problem.weight[rows]
    return replace(problem, grams=grams.streamed_sample(rows), y=problem.y[rows], weight=weight)


def _seeded(problem: Problem, start: WarmStart, rows: Indices) -> WarmStart:
    """Return a start on all samples of a problem, given a solution on those at ``rows``."""
    p, grams = problem, problem.grams
    assert isinstance(grams, StreamedGrams)
    coef = _spread(start.coef, rows, problem)
    programs = _dual_programs(p)
    if not programs:  # a linear system is as well begun by the coefficients themselves
        return WarmStart(start.eta, coef)
    columns = grams.matvec(start.eta, coef).reshape(grams.n_samples, -1).T
    found = [program.warm_coefficients_from(f) for program, f in zip(programs, columns, strict=True)]
    return WarmStart(start.eta, np.column_stack(found).reshape(p.y.shape))


def _feasible(problem: Problem, coef: AnyArray) -> AnyArray:
    """Return feasible coefficients near those of a similar problem, whose prices may differ."""
    programs = _dual_programs(problem)
    if not programs:  # a linear system takes any
        return coef
    columns = coef.reshape(len(coef), -1).T
    found = [program.feasible(v) for program, v in zip(programs, columns, strict=True)]
    return np.column_stack(found).reshape(coef.shape)


def _dual_programs(problem: Problem) -> list[DualProgram]:
    """Return the quadratic program of every column; none where the learner solves a linear system."""
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    return problem.learner.programs(problem.y, weight)


def _spread(coef: AnyArray | None, rows: Indices, problem: Problem) -> AnyArray:
    """Return coefficients of some samples as those of all, zero elsewhere."""
    out = np.zeros(problem.y.shape)
    if coef is not None:
        out[rows] = coef
    return out
