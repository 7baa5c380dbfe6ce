"""The Pegasos version of the p-norm problem: the paper's baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave.multiclass.base import PNormSolver
from kernelweave.multiclass.checkpoint import Checkpoint
from kernelweave.multiclass.iterate import Iterate
from kernelweave.multiclass.problem import PNormProblem
from kernelweave.multiclass.result import PNormResult
from kernelweave.multiclass.stochastic import BATCH, bound, rival, start
from kernelweave.solvers.problem import Progress


@dataclass
class Pegasos(PNormSolver):
    r"""Stochastic subgradient steps of length q/(λt), projected on the ball that holds the optimum.

    θ̄ ← min(1, q(P(0)/λ)^{1/2}/‖·‖)((1 − 1/t) θ̄ + (q/λt) z̄_t), [Orabona10, Sec. 4.1] after [Shalev07].

    Parameters
    ----------
    epochs : passes over the permuted samples.
    polish : return the mean of the second half of the steps, times its best multiple; False: the last one.
    batch : samples whose kernel rows are made together; it changes speed, not the iterates.
    record_every : epochs between two records of the bounds, each of which costs a pass; None: at the end.

    Notes
    -----
    The first step erases whatever it started from, so there is no warm start.
    Differs from the paper: it only says that Pegasos was extended to its problem; steps and ball follow from
    the strong convexity λ/q and from λ‖w‖² ≤ P(0) at the optimum.

    Examples
    --------
    >>> from kernelweave.solvers import Pegasos
    >>> Pegasos(epochs=50).polish
    True

    """

    epochs: int = 30
    polish: bool = True
    batch: int = BATCH
    record_every: int | None = None

    def check(self) -> None:
        self.require_counts(epochs=1, batch=1)

    def solve(
        self,
        problem: PNormProblem,
        rng: np.random.Generator,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> PNormResult:
        self.check()
        epochs, tracker = start(problem, rng, progress, checkpoint, self.batch)
        iterate = epochs.iterate
        step = _Subgradient(problem, **epochs.extra)
        try:
            while epochs.epoch < self.epochs:
                if iterate.past is None and 2 * epochs.epoch >= self.epochs:
                    iterate.average_from_here()
                epochs.run(step, step.numbers)
                if self.record_every and epochs.epoch % self.record_every == 0:
                    bound(tracker, iterate.answer(self.polish), self.polish, prove=False)
        except KeyboardInterrupt:
            return epochs.finish(tracker, iterate.coef, True, prove=True, stopped="interrupted")
        return epochs.finish(tracker, iterate.answer(self.polish), self.polish, prove=True)


@dataclass
class _Subgradient:
    """One step: callable, with the number it carries on."""

    problem: PNormProblem
    t: float = 0.0

    def numbers(self) -> dict[str, float]:
        return {"t": self.t}

    def __call__(self, iterate: Iterate, k: int, y: int) -> bool:
        lam, q = self.problem.lam, self.problem.q
        each, total = iterate.scores(k)
        other, loss = rival(total, y)
        weight = iterate.weight(k)
        active = loss > 0.0 and weight > 0.0
        self.t += 1.0
        rho = 1.0 - 1.0 / self.t
        iterate.shrink(rho)
        if active:
            iterate.grow(k, y, other, q / (lam * self.t) * weight, rho * each)
        norm, most = iterate.norm(), q * float(np.sqrt(self.problem.weight.mean() / lam))
        if norm > most:
            iterate.shrink(most / norm)
        iterate.count_step()
        return active
