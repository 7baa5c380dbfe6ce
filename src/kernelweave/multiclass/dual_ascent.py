"""The certified solver: coordinate ascent on the dual of the p-norm problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.estimators.validation import check_count, check_number
from kernelweave.multiclass.checkpoint import Checkpoint, generator_state, restored_generator
from kernelweave.multiclass.problem import (
    BoundTracker,
    PNormEvaluation,
    PNormProblem,
    PNormResult,
    PNormSolver,
    dual_norm_and_weights,
    energies,
    evaluate,
    rival_leads,
    sample_gaps,
)
from kernelweave.solvers.problem import Progress


@dataclass
class DualAscent(PNormSolver):
    r"""Dual coordinate ascent with exact line searches, and the gap for free.

    max over A of (1/N) Σ_i A_{i,y_i} − (1/2λN²)(Σ_j s_j^{q/2})^{2/q},  s_j = tr(A'K_jA), Σ_c A_ic = 0,
    A_ic ≤ [c = y_i]; the dual of [Orabona10, Eq. (9)].

    Parameters
    ----------
    tol : relative duality gap to stop at.
    max_passes : most rows of all kernels to use, in units of the number of samples.
    block : samples to work on at a time where kernels are not in memory; None chooses.

    Notes ----- A visit to a sample maximises a quadratic model of D in its row of A, by sorting, and then D
    itself on the line from the present row to that maximum. Where the kernels are not in memory, blocks of
    samples are drawn in proportion to their share of the gap (the samples with the largest gaps alone would
    return again and again); only those that moved have their rows computed.
    Differs from the paper: it is not in it; the problem is the paper's, the bounds are new.

    Examples
    --------
    >>> from kernelweave.solvers import DualAscent
    >>> DualAscent(tol=1e-3).max_passes
    200.0

    """

    tol: float = 1e-4
    max_passes: float = 200.0
    block: int | None = None

    def check(self) -> None:
        check_number("DualAscent.tol", self.tol, above=0.0, below=1.0)
        if not self.max_passes > 0.0:
            raise ValueError(f"DualAscent needs max_passes above 0; got max_passes={self.max_passes!r}.")
        check_count("DualAscent.block", self.block, optional=True)

    def solve(
        self,
        problem: PNormProblem,
        rng: np.random.Generator,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> PNormResult:
        self.check()
        tracker = BoundTracker(problem, progress)
        saved = None if checkpoint is None else checkpoint.load()
        if saved is None:
            state = AscentState.start(problem, rng)
        else:
            state = AscentState.restored(problem, saved)
            tracker.restore(saved)
        stopped = None
        try:
            while stopped is None:
                evaluation = state.evaluate()
                tracker.add(state.A, evaluation)
                if tracker.certificate.relative_gap <= self.tol:
                    stopped = "converged"
                elif state.passes >= self.max_passes:
                    stopped = "max_passes"
                else:
                    if checkpoint is not None and checkpoint.is_due():
                        checkpoint.save(state.saved() | tracker.state())
                    state.ascend(evaluation, tracker.certificate.relative_gap, self.block)
                    stopped = "stalled" if state.n_idle == 3 else None
        except KeyboardInterrupt:
            if tracker.best is None:
                raise
            stopped = "interrupted"
        if checkpoint is not None and stopped != "interrupted":
            checkpoint.clear()
        tracker = state.recertify(tracker)
        if stopped == "converged" and tracker.certificate.relative_gap > self.tol:
            stopped = "stalled"  # what looked like convergence was rounding
        return tracker.result(state.passes, stopped)


@dataclass
class AscentState:
    """Coefficients A, their products G_j = K_j A (kernels, classes, N), and all that the next step needs.

    ``step_squares`` are the sums of squares, per class, of all steps added to G; ``passes`` the rows used, in
    units of N; ``n_idle`` how many rounds in a row have moved nothing.
    """

    problem: PNormProblem
    rng: np.random.Generator
    A: Matrix
    G: AnyArray
    step_squares: Vector
    passes: float = 0.0
    n_idle: int = 0

    @classmethod
    def start(cls, problem: PNormProblem, rng: np.random.Generator) -> Self:
        n, C = problem.n_samples, problem.n_classes
        return cls(problem, rng, np.zeros((n, C)), np.zeros((problem.rows.n_kernels, C, n)), np.zeros(C))

    @classmethod
    def restored(cls, problem: PNormProblem, saved: dict[str, AnyArray]) -> Self:
        """Return the state that `saved` described."""
        rng, passes, n_idle = restored_generator(saved["rng"]), float(saved["passes"]), int(saved["n_idle"])
        return cls(problem, rng, saved["A"], saved["G"], saved["step_squares"], passes, n_idle)

    def saved(self) -> dict[str, Any]:
        """Return what a checkpoint has to hold."""
        names = ("A", "G", "step_squares", "passes", "n_idle")
        return {name: getattr(self, name) for name in names} | {"rng": generator_state(self.rng)}

    def evaluate(self) -> PNormEvaluation:
        return evaluate(self.problem, self.A, self.G, step_squares=self.step_squares)

    def ascend(self, evaluation: PNormEvaluation, relative_gap: float, block: int | None) -> None:
        """Visit the samples with the largest gaps: of all, or of a block where rows are computed."""
        if self.problem.rows.is_stored and block is None:
            # Far from the optimum the samples with less than half the mean gap are not worth a visit.
            n_moved = self._sweep(evaluation.sample_gaps, 0.1 if relative_gap < 1e-2 else 0.5)
        else:
            n_moved = self._sweep_block(evaluation.sample_gaps, block)
        self.n_idle = 0 if n_moved else self.n_idle + 1
        self.passes += n_moved / self.problem.n_samples

    def _sweep(self, gaps: Vector, threshold: float) -> int:
        """Visit all samples with a gap above this multiple of the mean, whose kernels are in memory."""
        everything = np.arange(self.problem.n_samples)
        before = self.A.copy()
        n_moved = self._visit(
            self.problem.rows.square_block(everything),
            everything,
            self._order(gaps, threshold),
            self.A,
            self.G,
            energies(self.A, self.G),
        )
        self.step_squares += ((self.A - before) ** 2).sum(axis=0)
        return n_moved

    def _sweep_block(self, gaps: Vector, size: int | None) -> int:
        """Ascend on a block of samples alone, then add what moved to the products of all samples."""
        places = self._draw_block(gaps, size)
        K = self.problem.rows.square_block(places)
        A, G = self.A[places], np.ascontiguousarray(self.G[:, :, places])
        s, block_gaps = energies(self.A, self.G), gaps[places]
        # The block is left at a twentieth of its gap: its samples depend on all others, which stand still.
        enough = 0.05 * float(block_gaps.sum())
        for _ in range(12):
            if not self._visit(K, places, self._order(block_gaps, 0.1), A, G, s):
                break
            block_gaps = self._gaps_of(places, A, G, s)
            if block_gaps.sum() <= enough:
                break
        moved = np.flatnonzero((self.A[places] != A).any(axis=1))
        if moved.size:
            self._add_products(places[moved], A[moved] - self.A[places[moved]])
            self.A[places] = A
        return int(moved.size)

    def _draw_block(self, gaps: Vector, size: int | None) -> Indices:
        """Draw samples in proportion to their gaps: a quarter of all, at least 256, or ``size``."""
        if size is None:
            size = min(gaps.size, max(gaps.size // 4, 256), self.problem.rows.max_block)
        positive = np.flatnonzero(gaps > 0.0)
        if positive.size <= size:
            return positive
        probability = gaps[positive] / gaps[positive].sum()
        return np.sort(self.rng.choice(positive, size, replace=False, p=probability, shuffle=False))

    def _order(self, gaps: Vector, threshold: float) -> Indices:
        """Return the places with a gap above this multiple of the mean, permuted."""
        return self.rng.permutation(np.flatnonzero(gaps > threshold * gaps.mean())).astype(np.int64)

    def _visit(self, K: AnyArray, places: Indices, order: Indices, A: Matrix, G: AnyArray, s: Vector) -> int:
        """Maximise D over one row of A after the other; A, G and s change in place. Return how many moved."""
        problem = self.problem
        y, weight = problem.y[places], problem.weight[places]
        return _core.ascend(K, y, weight, problem.scale, problem.q, order, A, G, s)

    def _gaps_of(self, places: Indices, A: Matrix, G: AnyArray, s: Vector) -> Vector:
        """Return the gaps of the samples of a block."""
        problem, y = self.problem, self.problem.y[places]
        f = np.tensordot(dual_norm_and_weights(s, problem.q)[1], G, axes=1) / problem.scale
        return sample_gaps(A, f, rival_leads(f, y), y, problem.weight[places])

    def _add_products(self, moved: Indices, steps: Matrix) -> None:
        """Add K_j times the steps of these samples to G."""
        self.step_squares += (steps**2).sum(axis=0)
        products = self.problem.rows.products(np.arange(self.problem.n_samples), moved, steps)
        self.G += products.transpose(0, 2, 1)

    def recertify(self, tracker: BoundTracker) -> BoundTracker:
        """Return the bounds drawn from products computed anew, where many small steps have made G.

        Only where kernels are stored: there G is updated at every visit, and computing it again is cheap.
        """
        if not self.problem.rows.is_stored or tracker.best is None:
            return tracker
        fresh = BoundTracker(self.problem, None)
        # The least P seen and the last, highest D need not be of the same A.
        for A in (tracker.best[0], self.A):
            fresh.add(A, evaluate(self.problem, A, self.problem.products(A)))
        fresh.history = tracker.history
        return fresh
