"""OBSCURE: an online stage that finds the region, a batch stage of proximal projected steps within it."""

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
class OnlineBatch(PNormSolver):
    r"""The two stages of OBSCURE [Orabona10, Algorithms 1 and 2].

    Stage 1 adds η z̄_t = η(φ̄(x, y) − φ̄(x, ŷ)) to θ̄ whenever the loss is positive; stage 2 takes projected
    steps θ̄ ← min(1, qR/‖·‖)((1 − λη_t/q) θ̄ + η_t z̄_t) inside the ball of radius R that stage 1 found.

    Parameters
    ----------
    online_epochs : epochs of stage 1, fewer when it separates the training set.
    batch_epochs : epochs of stage 2; 0 stops after stage 1.
    eta : the step η of stage 1: large is fast, small gives a better R.
    polish : return the mean of stage 2's second half, times its best multiple; False is the last iterate.
    batch : samples whose kernel rows are made together; it changes speed, not the iterates.
    record_every : epochs between two records of the bounds, each of which costs a pass; None: at the end.

    Notes
    -----
    R² = (2/λ) min(P(0), P(w of stage 1)), [Orabona10, line 12 of Algorithm 1].
    Symbols: M classes, F kernels, θ̄ → `Iterate`, ‖θ^j‖² → ``s``, s_t → S.
    Differs from the paper: permuted epochs instead of sampling with replacement; weights multiply the loss of
    their sample; ``polish`` beats the last iterate (False is the paper's answer).

    Examples
    --------
    >>> from kernelweave.solvers import OnlineBatch
    >>> OnlineBatch(online_epochs=2).eta
    2.0

    """

    online_epochs: int = 5
    batch_epochs: int = 30
    eta: float = 2.0
    polish: bool = True
    batch: int = BATCH
    record_every: int | None = None

    def check(self) -> None:
        self.require_counts(online_epochs=1, batch_epochs=0, batch=1)
        if not 0.0 < self.eta < np.inf:
            raise ValueError(f"OnlineBatch needs a finite eta above 0; got eta={self.eta!r}.")

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
        try:
            while epochs.stage == 0:
                updates = epochs.run(self._online)
                if updates == 0 or epochs.epoch >= self.online_epochs:
                    epochs.stage, epochs.epoch = 1, 0
                    upper = bound(tracker, iterate.coef, rescale=False, prove=False).upper
                    most = min(upper, float(problem.weight.mean()))
                    epochs.extra = {"R": float(np.sqrt(2.0 * most / problem.lam)), "S": 0.0, "t": 0.0}
            proximal = _Proximal(problem, **epochs.extra)
            while epochs.epoch < self.batch_epochs:
                if iterate.past is None and 2 * epochs.epoch >= self.batch_epochs:
                    iterate.average_from_here()
                epochs.run(proximal, proximal.numbers)
                if self.record_every and epochs.epoch % self.record_every == 0:
                    bound(tracker, iterate.answer(self.polish), self.polish, prove=False)
        except KeyboardInterrupt:
            return epochs.finish(tracker, iterate.coef, True, prove=True, stopped="interrupted")
        return epochs.finish(tracker, iterate.answer(self.polish), self.polish, prove=True)

    def _online(self, iterate: Iterate, k: int, y: int) -> bool:
        """Take one step of stage 1 [Orabona10, Algorithm 1, lines 5-9]."""
        each, total = iterate.scores(k)
        other, loss = rival(total, y)
        weight = iterate.weight(k)
        if loss <= 0.0 or weight <= 0.0:
            return False
        iterate.grow(k, y, other, self.eta * weight, each)
        return True


@dataclass
class _Proximal:
    """One step of stage 2 [Orabona10, Algorithm 2, lines 5-13]: callable, with the numbers it carries on."""

    problem: PNormProblem
    R: float
    S: float = 0.0
    t: float = 0.0

    def numbers(self) -> dict[str, float]:
        return {"R": self.R, "S": self.S, "t": self.t}

    def __call__(self, iterate: Iterate, k: int, y: int) -> bool:
        lam, q = self.problem.lam, self.problem.q
        each, total = iterate.scores(k)
        other, loss = rival(total, y)
        weight = iterate.weight(k)
        active = loss > 0.0 and weight > 0.0
        length = weight * iterate.pair_norm(k) if active else 0.0
        self.t += 1.0
        d = lam * self.t + self.S
        self.S += 0.5 * (np.sqrt(d * d + q * (lam / q * iterate.norm() + length) ** 2 / self.R**2) - d)
        eta = q / (lam * self.t + self.S)
        rho = max(0.0, 1.0 - lam * eta / q)
        iterate.shrink(rho)
        if active:
            iterate.grow(k, y, other, eta * weight, rho * each)
        norm = iterate.norm()
        if norm > q * self.R:
            iterate.shrink(q * self.R / norm)
        iterate.count_step()
        return active
