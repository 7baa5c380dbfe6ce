"""The certified solver: coordinate ascent on the dual of the p-norm problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.multiclass.base import PNormSolver
from kernelweave.multiclass.certificate import Evaluation, clipped, energies, evaluate
from kernelweave.multiclass.checkpoint import Checkpoint, generator_state, restored_generator
from kernelweave.multiclass.problem import PNormProblem
from kernelweave.multiclass.result import PNormResult, Tracker
from kernelweave.multiclass.stochastic import images
from kernelweave.solvers.problem import Progress

# Samples below these shares of the mean gap wait: first the coarse sweeps, later the fine ones.
COARSE, FINE, FINE_BELOW = 0.5, 0.1, 1e-2
# A block is left when this share of its own gap is still open, or after so many sweeps.
SETTLED, SWEEPS = 0.05, 12
# A block takes this share of the samples, and at least so many; memory may allow fewer.
SHARE, LEAST = 4, 256


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

    Notes
    -----
    A visit to a sample maximises the quadratic model of D in its row of A, by sorting, and then D itself on
    the way there. Samples without kernels in memory are taken in blocks, drawn in proportion to their
    share of the gap (greedy choices go round in circles); only those that moved have their rows computed.
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
        if not 0.0 < self.tol < 1.0:
            raise ValueError(f"DualAscent needs a tol between 0 and 1; got tol={self.tol!r}.")
        if not self.max_passes > 0.0:
            raise ValueError(f"DualAscent needs max_passes above 0; got max_passes={self.max_passes!r}.")
        if self.block is not None and self.block < 1:
            raise ValueError(f"DualAscent needs block=None or at least 1; got block={self.block!r}.")

    def solve(
        self,
        problem: PNormProblem,
        rng: np.random.Generator,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> PNormResult:
        self.check()
        tracker = Tracker(problem, progress)
        saved = None if checkpoint is None else checkpoint.load()
        walk = _Walk.start(problem, rng) if saved is None else _Walk.restored(problem, saved)
        if saved is not None:
            tracker.restore(saved)
        stopped = None
        try:
            while stopped is None:
                seen = walk.evaluate()
                tracker.add(walk.A, seen)
                if tracker.certificate.relative_gap <= self.tol:
                    stopped = "converged"
                elif walk.passes >= self.max_passes:
                    stopped = "max_passes"
                else:
                    if checkpoint is not None and checkpoint.due():
                        checkpoint.save(walk.state() | tracker.state())
                    stopped = None if walk.advance(seen, tracker, self.block) else "stalled"
        except KeyboardInterrupt:
            if tracker.best is None:
                raise
            stopped = "interrupted"
        if checkpoint is not None and stopped != "interrupted":
            checkpoint.clear()
        proved = walk.proved(tracker)
        if stopped == "converged" and proved.certificate.relative_gap > self.tol:
            stopped = "stalled"  # what looked like convergence was rounding
        return proved.result(walk.passes, stopped)


@dataclass
class _Walk:
    """Coefficients A, their images G_j = K_jA as (kernels, classes, N), and what the next step depends on."""

    problem: PNormProblem
    rng: np.random.Generator
    A: Matrix
    G: AnyArray
    travel: Vector
    passes: float = 0.0
    idle: int = 0

    @classmethod
    def start(cls, problem: PNormProblem, rng: np.random.Generator) -> Self:
        n, C = problem.n_samples, problem.n_classes
        return cls(problem, rng, np.zeros((n, C)), np.zeros((problem.rows.n_kernels, C, n)), np.zeros(C))

    @classmethod
    def restored(cls, problem: PNormProblem, state: dict[str, AnyArray]) -> Self:
        rng = restored_generator(state["rng"])
        A, G, travel = state["A"], state["G"], state["travel"]
        return cls(problem, rng, A, G, travel, float(state["passes"]), int(state["idle"]))

    def state(self) -> dict[str, Any]:
        names = ("A", "G", "travel", "passes", "idle")
        return {name: getattr(self, name) for name in names} | {"rng": generator_state(self.rng)}

    def evaluate(self) -> Evaluation:
        return evaluate(self.problem, self.A, self.G, travel=self.travel)

    def advance(self, seen: Evaluation, tracker: Tracker, block: int | None) -> bool:
        """Move once over the samples that hold the gap open; False when nothing moves any more."""
        near = tracker.certificate.relative_gap < FINE_BELOW
        if self.problem.rows.is_stored and block is None:
            moved = self._sweep(seen.open, FINE if near else COARSE)
        else:
            moved = self._block(seen.open, block)
        self.idle = 0 if moved else self.idle + 1
        self.passes += moved / self.problem.n_samples
        return self.idle < 3

    def _sweep(self, still: Vector, share: float) -> int:
        """Ascend on all samples, whose kernels are in memory."""
        every = np.arange(self.problem.n_samples)
        order = self.rng.permutation(np.flatnonzero(still > share * still.mean()))
        before = self.A.copy()
        moved = self._ascend(self.problem.rows.block(every), every, order, self.A, self.G, self._energies())
        self.travel += ((self.A - before) ** 2).sum(axis=0)
        return moved

    def _block(self, still: Vector, wanted: int | None) -> int:
        """Ascend on a block of samples alone, then carry what moved to all of them."""
        places = self._choose(still, wanted)
        K = self.problem.rows.block(places)
        A, G = self.A[places], np.ascontiguousarray(self.G[:, :, places])
        s, goal = self._energies(), SETTLED * float(still[places].sum())
        still = still[places]
        for _ in range(SWEEPS):
            order = self.rng.permutation(np.flatnonzero(still > FINE * still.mean()))
            if not self._ascend(K, places, order, A, G, s):
                break
            still = self._open(places, A, G, s)
            if still.sum() <= goal:
                break
        moved = np.flatnonzero((self.A[places] != A).any(axis=1))
        if moved.size:
            self._carry(places[moved], A[moved] - self.A[places[moved]])
            self.A[places] = A
        return int(moved.size)

    def _choose(self, still: Vector, wanted: int | None) -> Indices:
        n = still.size
        size = min(n, max(n // SHARE, LEAST), self.problem.rows.block_size) if wanted is None else wanted
        waiting = np.flatnonzero(still > 0.0)
        if waiting.size <= size:
            return waiting
        share = still[waiting] / still[waiting].sum()
        return np.sort(self.rng.choice(waiting, size, replace=False, p=share, shuffle=False))

    def _ascend(self, K: AnyArray, places: Indices, order: Indices, A: Matrix, G: AnyArray, s: Vector) -> int:
        problem = self.problem
        y, weight = problem.y[places], problem.weight[places]
        return _core.ascend(K, y, weight, problem.scale, problem.q, order.astype(np.int64), A, G, s)

    def _open(self, places: Indices, A: Matrix, G: AnyArray, s: Vector) -> Vector:
        """Return how much of the gap each sample of the block holds."""
        problem, index = self.problem, np.arange(places.size)
        eta = problem.slopes(s)[1]
        f = np.einsum("j,jci->ci", eta, G) / problem.scale
        y = problem.y[places]
        errors = f - f[y, index] + 1.0
        errors[y, index] = 0.0
        loss = problem.weight[places] * errors.max(axis=0)
        return np.asarray(np.maximum(loss - A[index, y] + np.einsum("ic,ci->i", A, f), 0.0))

    def _carry(self, moved: Indices, steps: Matrix) -> None:
        """Add the images of the steps of these samples to those of all."""
        self.travel += (steps**2).sum(axis=0)
        images = self.problem.rows.products(np.arange(self.problem.n_samples), moved, steps)
        self.G += images.transpose(0, 2, 1)

    def _energies(self) -> Vector:
        return energies(self.A, self.G)

    def proved(self, tracker: Tracker) -> Tracker:
        """Return bounds drawn from images made anew, where many small steps made those at hand."""
        if not self.problem.rows.is_stored or tracker.best is None:
            return tracker
        fresh = Tracker(self.problem, None)
        # The least P seen and the last, highest D need not be of the same A.
        for A in (tracker.best[0], self.A):
            inside = clipped(A, self.problem.y, self.problem.weight)
            fresh.add(inside, evaluate(self.problem, inside, images(self.problem, inside)))
        fresh.history = tracker.history
        return fresh
