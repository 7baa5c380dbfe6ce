"""The certified solver: coordinate ascent on the dual of the p-norm problem.

Every round has three steps: K_m A of all kernels gives both bounds, the kernel weights eta and a model of the
dual (one pass over the pairs of samples); ascent on the model needs Σ eta_m K_m of a block of samples alone;
a line search on the dual itself says how far to go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.estimators.validation import check_count, check_number
from kernelweave.multiclass.checkpoint import Checkpoint, generator_state, restored_generator
from kernelweave.multiclass.dual_model import DualModel, KernelSplit, norms_of_samples
from kernelweave.multiclass.problem import (
    BoundTracker,
    PNormEvaluation,
    PNormProblem,
    PNormResult,
    PNormSolver,
    dual_norm_and_weights,
    energies,
    evaluate,
    evaluate_anew,
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
    block : samples to work on at a time; None: all that matter, as far as the matrix among them fits.
    inner_tol : share of the gap at which the ascent on a model ends.
    max_sweeps : most sweeps over a block per round.

    Notes
    -----
    Between two passes over all kernels, D is replaced by a model in which s_j = tr(A'K_jA) is exact to first
    order in the change S of A, and its second-order part, tr(S'K_jS), is the share of kernel j in the sum
    tr(S'(Σ_m eta_m K_m)S). A visit to a sample maximises a quadratic bound of the model in its row of A, by
    sorting, and then the model itself on the line from the present row to that maximum. Where not all samples
    fit, those of a block are drawn in proportion to their share of the gap (the ones with the largest gaps
    alone would return again and again); only rows that moved are used. Where kernels are computed in float32,
    the bounds returned are those of the last coefficients in float64.
    Differs from the paper: it is not in it; the problem is the paper's, the bounds are new.

    Examples
    --------
    >>> from kernelweave.solvers import DualAscent
    >>> DualAscent(tol=1e-3).max_passes
    200.0

    """

    tol: float = 1e-3
    max_passes: float = 200.0
    block: int | None = None
    inner_tol: float = 0.03
    max_sweeps: int = 30

    def check(self) -> None:
        check_number("DualAscent.tol", self.tol, above=0.0, below=1.0)
        if not self.max_passes > 0.0:
            raise ValueError(f"DualAscent needs max_passes above 0; got max_passes={self.max_passes!r}.")
        check_count("DualAscent.block", self.block, optional=True)
        check_number("DualAscent.inner_tol", self.inner_tol, above=0.0, below=1.0)
        check_count("DualAscent.max_sweeps", self.max_sweeps)

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
                    if state.is_held_up_by_rounding(evaluation, tracker.certificate.relative_gap, self.tol):
                        state.refine()
                        continue
                    state.ascend(evaluation, self)
                    stopped = "stalled" if state.n_idle == 3 else None
                    if state.was_interrupted:
                        tracker.add(state.A, state.evaluate())
                        stopped = "interrupted"
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
    was_interrupted: bool = False  # within a round, which then ended early

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

    def ascend(self, evaluation: PNormEvaluation, solver: DualAscent) -> None:
        """Ascend on the samples that matter as the model says, and go as far as the dual itself rises."""
        places = self._block(evaluation.sample_gaps, solver.block)
        A = self._ascended(places, solver)
        moved = np.flatnonzero((self.A[places] != A).any(axis=1))
        if moved.size:
            self._step(places[moved], A[moved] - self.A[places[moved]])
        self.n_idle = 0 if moved.size else self.n_idle + 1
        self.passes += moved.size / self.problem.n_samples

    def _ascended(self, places: Indices, solver: DualAscent) -> Matrix:
        """Return rows of these samples where the model of the dual has little of its gap left."""
        A, y, weight = self.A[places], self.problem.y[places], self.problem.weight[places]
        model = self._model(places)

        def gaps() -> Vector:
            f = model.scores()
            return sample_gaps(A, f, rival_leads(f, y), y, weight)

        found = gaps()
        enough = solver.inner_tol * float(found.sum())
        for _ in range(solver.max_sweeps):
            order = self.rng.permutation(np.flatnonzero(found > 0.1 * found.mean()))
            try:
                if not model.visit(A, y, weight, order):
                    break
            except KeyboardInterrupt:
                self.was_interrupted = True
                break
            found = gaps()
            if found.sum() <= enough:
                break
        return A

    def _model(self, places: Indices) -> DualModel:
        problem, s = self.problem, energies(self.A, self.G)
        diagonals = problem.rows.diagonals
        split = KernelSplit.of(s, diagonals.mean(axis=1), problem.q)
        return DualModel(
            K=problem.rows.combined_block(split.eta, places),
            G=np.ascontiguousarray(self.G[:, :, places].transpose(0, 2, 1)),
            share=split.share,
            s=s,
            alone=norms_of_samples(diagonals[:, places], problem.q),
            scale=problem.scale,
            q=problem.q,
        )

    def is_held_up_by_rounding(self, evaluation: PNormEvaluation, relative_gap: float, tol: float) -> bool:
        """Whether most of the gap is what is allowed for rounding to float32."""
        if not self.problem.rows.is_rounded:
            return False
        computed = float(evaluation.sample_gaps.mean()) / evaluation.upper
        return computed <= max(tol, 0.1 * relative_gap)

    def refine(self) -> None:
        """Go on in float64, with products computed anew."""
        self.problem = replace(self.problem, rows=self.problem.rows.in_float64())
        self.G = self.problem.products(self.A)
        self.step_squares = np.einsum("ic,ic->c", self.A, self.A)

    def _block(self, gaps: Vector, size: int | None) -> Indices:
        """Return the samples with a gap or a coefficient, or so many of them, drawn in proportion to their gaps."""
        matter = np.flatnonzero((gaps > 0.0) | self.A.any(axis=1))
        size = self.problem.rows.max_block if size is None else size
        if matter.size <= size:
            return matter
        share = gaps[matter] / gaps.sum()
        # Some that have coefficients and no gap: they make room for the others.
        probability = 0.9 * share + 0.1 / matter.size
        return np.sort(
            self.rng.choice(matter, size, replace=False, p=probability / probability.sum(), shuffle=False)
        )

    def _step(self, moved: Indices, step: Matrix) -> None:
        """Add the multiple of a step with the highest dual to A, and its products to G."""
        problem = self.problem
        products = problem.rows.products(np.arange(problem.n_samples), moved, step).transpose(0, 2, 1)
        s = energies(self.A, self.G)
        a = np.array([np.einsum("ic,ci->", step, G[:, moved]) for G in self.G])
        b = energies(step, products[:, :, moved])
        gain = float(step[np.arange(moved.size), problem.y[moved]].sum())
        t = _best_length(s, a, b, gain, problem)
        self.A[moved] += t * step
        self.G += t * products
        self.step_squares += t * t * (step**2).sum(axis=0)

    def recertify(self, tracker: BoundTracker) -> BoundTracker:
        """Return the bounds drawn from products computed anew, and in float64.

        Those of G are sums of many steps, and perhaps of numbers rounded to float32.
        """
        if tracker.best is None:
            return tracker
        problem = replace(self.problem, rows=self.problem.rows.in_float64())
        fresh = BoundTracker(problem, None)
        # The least P seen and the last, highest D need not be of the same A.
        for A in (tracker.best[0], self.A):
            if fresh.best is None or (tracker.best[0] != A).any():
                fresh.add(A, evaluate_anew(problem, A))
        fresh.history = tracker.history
        return fresh


def _best_length(
    s: Vector, a: Vector, b: Vector, gain: float, problem: PNormProblem, steps: int = 50
) -> float:
    """Return the t in [0, 1] with the largest t gain − (Σ_j (s_j + 2ta_j + t²b_j)^{q/2})^{2/q} / (2λN), by halving."""

    def slope(t: float) -> float:
        eta = dual_norm_and_weights(s + 2.0 * t * a + t * t * b, problem.q)[1]
        return gain - float(eta @ (a + t * b)) / problem.scale

    if slope(1.0) >= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) >= 0.0 else (low, middle)
    return low
