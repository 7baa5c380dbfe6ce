"""The stochastic solvers: OBSCURE's two stages (`OnlineBatch`) and Pegasos, the paper's baseline.

Both visit one sample at a time and change one `ThetaIterate`. The three steps of the paper are functions of
their own (`online_step`, `proximal_step`, `subgradient_step`); `StochasticRun` takes them through permuted
epochs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.estimators.validation import check_count, check_number
from kernelweave.multiclass.checkpoint import Checkpoint, generator_state, restored_generator
from kernelweave.multiclass.problem import (
    BoundTracker,
    PNormProblem,
    PNormResult,
    PNormSolver,
    dual_feasible,
    dual_norm_and_weights,
    evaluate,
)
from kernelweave.solvers.problem import Progress


class ThetaIterate:
    r"""θ^j = Σ_i B_i ⊗ φ^j(x_i) with B = factor · V, and s_j = ‖θ^j‖² kept by increments.

    Every update adds the same multiple of z̄ to all blocks of θ̄, so one N × classes matrix serves all kernels;
    shrinking θ̄ only changes the factor. The mean over many steps is kept the same way, without adding up N ×
    classes numbers per step: Σ_t B_t = total · V − past, where ``total`` is the sum of the factors so far and
    ``past`` corrects for the entries of V that were not there yet when earlier steps were counted.

    Parameters
    ----------
    shape : number of samples and of classes.
    s : ‖θ^j‖² at the start.
    q : exponent of the dual norm.
    smallest_factor : below it the factor is multiplied into V, long before it underflows.
    """

    def __init__(self, shape: tuple[int, int], s: Vector, q: float, smallest_factor: float = 1e-60) -> None:
        self.V = np.zeros(shape)
        self.s, self.q, self.smallest_factor = s.copy(), q, smallest_factor
        self.factor, self.total, self.count = 1.0, 0.0, 0
        self.past: Matrix | None = None
        self._weigh()

    def _weigh(self) -> None:
        """Compute ‖θ̄‖_{2,q} and the weights σ_j anew; most visits change neither, or only the length of θ̄."""
        square, self.weights = dual_norm_and_weights(self.s, self.q)
        self.norm = float(np.sqrt(square))

    def load(
        self, places: Indices, y: AnyArray, weight: Vector, G: AnyArray, K: AnyArray, diagonals: Matrix
    ) -> None:
        """Take up a batch of samples, given with classes, weights, kernels K among them and k_j(x, x).

        G (kernels, batch, classes) are the scores V' k_j(·, x), without the factor; they are changed in
        place.
        """
        self._places, self._y, self._weight = places, y, weight
        self._G, self._K, self._diagonals = G, K, diagonals

    def violation(self, k: int) -> tuple[int, float]:
        """Return the best wrong class for the k-th sample of the batch, and the weight of its loss.

        The weight is 0 where the multiclass hinge loss [Orabona10, Eq. (5)] is: then nothing has to change.
        """
        scores = self.factor * (self.weights @ self._G[:, k]) / self.q  # w̄ · φ̄(x, c), with w^j = σ_j θ^j / q
        label = self._y[k]
        own, scores[label] = scores[label], -np.inf
        rival = int(scores.argmax())
        return rival, float(self._weight[k]) if 1.0 - (own - scores[rival]) > 0.0 else 0.0

    def add_pair(self, k: int, rival: int, step: float) -> None:
        """Add step · z̄ to θ̄, z̄ = φ̄(x, y) − φ̄(x, rival) for the k-th sample of the batch."""
        i, label = self._places[k], self._y[k]
        along = self.factor * (self._G[:, k, label] - self._G[:, k, rival])  # θ^j · z^j
        self.s += 2.0 * step * along + 2.0 * step * step * self._diagonals[:, k]  # ‖z^j‖² = 2 k_j(x, x)
        np.maximum(self.s, 0.0, out=self.s)
        change = step / self.factor
        for c, amount in ((label, change), (rival, -change)):
            self.V[i, c] += amount
            self._G[:, :, c] += amount * self._K[:, k]
            if self.past is not None:
                self.past[i, c] += amount * self.total
        self._weigh()

    def shrink(self, factor: float) -> None:
        """Multiply θ̄ by a factor from 0 to 1."""
        self.s *= factor * factor
        self.norm *= factor
        self.factor *= factor
        if abs(self.factor) >= self.smallest_factor:
            return
        if self.past is not None:  # the sum so far is frozen: in units of the new V it could overflow
            self.past -= self.total * self.V
            self.total = 0.0
        self.V *= self.factor
        self._G *= self.factor
        self.factor = 1.0

    def project(self, radius: float) -> None:
        """Shrink θ̄ into the ball of this radius."""
        if self.norm > radius:
            self.shrink(radius / self.norm)

    def pair_norm(self, k: int) -> float:
        """Return ‖z̄‖_{2,q} of the k-th sample of the batch: every block of z̄ holds φ(x) twice."""
        return float(np.sqrt(dual_norm_and_weights(2.0 * self._diagonals[:, k], self.q)[0]))

    def start_averaging(self) -> None:
        """WarmStart the mean over the iterates that follow."""
        self.past, self.total, self.count = np.zeros_like(self.V), 0.0, 0

    def count_step(self) -> None:
        """Include the present iterate in the mean."""
        if self.past is not None:
            self.total += self.factor
            self.count += 1

    @property
    def coef(self) -> Matrix:
        """B of the present iterate."""
        return self.factor * self.V

    @property
    def mean(self) -> Matrix:
        """B of the mean, or of the present iterate where no mean was started."""
        if self.past is None or not self.count:
            return self.coef
        return (self.total * self.V - self.past) / self.count

    def state(self) -> dict[str, Any]:
        """Return what has to be saved."""
        names = ("V", "s", "norm", "weights", "factor", "total", "count", "past")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Continue from a saved state."""
        self.V, self.s, self.past = state["V"], state["s"], state.get("past")
        self.norm, self.weights = float(state["norm"]), state["weights"]
        self.factor, self.total = float(state["factor"]), float(state["total"])
        self.count = int(state["count"])


@dataclass
class StochasticRun:
    """Permuted epochs of a stochastic solver, and all numbers needed to continue them from a checkpoint.

    ``t``, ``S`` and ``R`` are the step number, s_t and the radius of [Orabona10, Algorithm 2].
    """

    problem: PNormProblem
    rng: np.random.Generator
    batch: int = 128
    checkpoint: Checkpoint | None = None
    stage: int = 0
    epoch: int = 0
    position: int = 0
    n_updates: int = 0
    n_visits: int = 0
    t: int = 0
    S: float = 0.0
    R: float = np.inf
    order: AnyArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    iterate: ThetaIterate = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        shape = (problem.n_samples, problem.n_classes)
        self.iterate = ThetaIterate(shape, np.zeros(problem.rows.n_kernels), problem.q)
        state = None if self.checkpoint is None else self.checkpoint.load()
        if state is not None:
            self.iterate.restore(state)
            for name in self._counters():
                setattr(self, name, type(getattr(self, name))(state[name]))
            self.order, self.rng = state["order"], restored_generator(state["rng"])

    def _counters(self) -> dict[str, float]:
        names = ("stage", "epoch", "position", "n_updates", "n_visits", "t", "S", "R")
        return {name: getattr(self, name) for name in names}

    def run_epoch(self, step: Step) -> int:
        """Run one epoch, or the rest of one; return how many of its steps changed the iterate."""
        n = self.problem.n_samples
        if self.order.size == 0:
            self.order, self.position, self.n_updates = self.rng.permutation(n), 0, 0
        while self.position < n:
            places = self.order[self.position : self.position + self.batch]
            self._load(places)
            for k in range(places.size):
                self.n_updates += step(self, k)
            self.position += places.size
            self.n_visits += places.size
            if self.checkpoint is not None and self.checkpoint.is_due():
                place = {"order": self.order, "rng": generator_state(self.rng)}
                self.checkpoint.save(self.iterate.state() | self._counters() | place)
        self.order = self.order[:0]
        self.epoch += 1
        return self.n_updates

    def _load(self, places: Indices) -> None:
        """Compute the scores of a batch, from the support so far, and the kernels among it."""
        problem, V = self.problem, self.iterate.V
        support = np.flatnonzero(V.any(axis=1))
        factor = self.iterate.factor  # V alone may leave the range of float32
        G = problem.rows.products(places, support, factor * V[support]) / factor
        K = problem.rows.square_block(places).astype(
            np.float64, copy=False
        )  # steps may leave the range of float32
        diagonals = problem.rows.diagonals[:, places]
        self.iterate.load(places, problem.y[places], problem.weight[places], G, K, diagonals)


# One visit to the k-th sample of the batch; returns whether its loss was positive.
Step = Callable[[StochasticRun, int], bool]


def online_step(iterate: ThetaIterate, k: int, eta: float) -> bool:
    """Stage 1, θ̄ += η weight z̄ where the loss is positive [Orabona10, Algorithm 1, lines 5-9]."""
    rival, weight = iterate.violation(k)
    if weight > 0.0:
        iterate.add_pair(k, rival, eta * weight)
    return weight > 0.0


def proximal_step(run: StochasticRun, k: int) -> bool:
    """Stage 2, a proximal projected step in the ball of radius R [Orabona10, Algorithm 2, lines 5-13]."""
    iterate, lam, q = run.iterate, run.problem.lam, run.problem.q
    rival, weight = iterate.violation(k)
    length = weight * iterate.pair_norm(k) if weight > 0.0 else 0.0
    run.t += 1
    d = lam * run.t + run.S
    run.S += 0.5 * (float(np.sqrt(d * d + q * (lam / q * iterate.norm + length) ** 2 / run.R**2)) - d)
    eta = q / (lam * run.t + run.S)
    iterate.shrink(max(0.0, 1.0 - lam * eta / q))
    if weight > 0.0:
        iterate.add_pair(k, rival, eta * weight)
    iterate.project(q * run.R)
    iterate.count_step()
    return weight > 0.0


def subgradient_step(run: StochasticRun, k: int) -> bool:
    """Pegasos, one subgradient step of length q/(λt), then into the ball that holds the optimum."""
    iterate, lam, q = run.iterate, run.problem.lam, run.problem.q
    rival, weight = iterate.violation(k)
    run.t += 1
    iterate.shrink(1.0 - 1.0 / run.t)
    if weight > 0.0:
        iterate.add_pair(k, rival, q / (lam * run.t) * weight)
    iterate.project(q * float(np.sqrt(run.problem.weight.mean() / lam)))
    iterate.count_step()
    return weight > 0.0


class StochasticSolver(PNormSolver):
    """A solver that runs permuted epochs, and bounds the optimum by the iterate it ends with."""

    polish: bool
    batch: int
    record_every: int | None

    def solve(
        self,
        problem: PNormProblem,
        rng: np.random.Generator,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> PNormResult:
        self.check()
        run = StochasticRun(problem, rng, self.batch, checkpoint)
        tracker = BoundTracker(problem, progress)
        stopped = "epochs"
        try:
            self._run(run, tracker)
        except KeyboardInterrupt:
            stopped = "interrupted"
        finished = stopped == "epochs"
        B = self._returned(run) if finished else run.iterate.coef
        rescale = self.polish or not finished
        tracker.forget_best()
        _add_iterate(tracker, B, rescale)
        _add_feasible_iterate(tracker, B)
        if checkpoint is not None and finished:
            checkpoint.clear()
        return tracker.result(run.n_visits / problem.n_samples, stopped)

    @abstractmethod
    def _run(self, run: StochasticRun, tracker: BoundTracker) -> None:
        """Run all epochs that are left."""

    def _run_averaged(self, run: StochasticRun, tracker: BoundTracker, step: Step, epochs: int) -> None:
        """Run these epochs, averaging over the second half of them."""
        while run.epoch < epochs:
            if run.iterate.past is None and 2 * run.epoch >= epochs:
                run.iterate.start_averaging()
            run.run_epoch(step)
            if self.record_every and run.epoch % self.record_every == 0:
                _add_iterate(tracker, self._returned(run), self.polish)

    def _returned(self, run: StochasticRun) -> Matrix:
        return run.iterate.mean if self.polish else run.iterate.coef


def _add_iterate(tracker: BoundTracker, B: Matrix, rescale: bool) -> float:
    """Bound the optimum from above by the iterate with coefficients B = (q/λN) A; return that bound."""
    problem = tracker.problem
    A = (problem.scale / problem.q) * B
    evaluation = evaluate(problem, A, problem.products(A), rescale=rescale)
    tracker.add(A, evaluation)
    return evaluation.upper


def _add_feasible_iterate(tracker: BoundTracker, B: Matrix) -> None:
    """Bound the optimum from below by the iterate, its rows shortened until it is dual feasible."""
    problem = tracker.problem
    A = dual_feasible((problem.scale / problem.q) * B, problem.y, problem.weight)
    tracker.lower = max(tracker.lower, evaluate(problem, A, problem.products(A)).lower)


@dataclass
class OnlineBatch(StochasticSolver):
    r"""The two stages of OBSCURE [Orabona10, Algorithms 1 and 2].

    Stage 1 adds η z̄_t = η(φ̄(x, y) − φ̄(x, ŷ)) to θ̄ whenever the loss is positive; stage 2 takes projected
    steps θ̄ ← min(1, qR/‖·‖)((1 − λη_t/q) θ̄ + η_t z̄_t) inside the ball of radius R that stage 1 found.

    Parameters
    ----------
    online_epochs : epochs of stage 1, fewer when it separates the training set.
    batch_epochs : epochs of stage 2; 0 stops after stage 1.
    tol : relative gap at which more epochs end; None makes ``batch_epochs`` and no more.
    max_epochs : most epochs of stage 2 where their number is doubled until ``tol`` is reached.
    eta : the step η of stage 1: large is fast, small gives a better R.
    polish : return the mean of stage 2's second half, times its best multiple; False is the last iterate.
    batch : samples whose kernel rows are computed together; it changes speed, not the iterates.
    record_every : epochs between two records of the bounds, each of which costs a pass; None: at the end.

    Notes
    -----
    R² = (2/λ) min(P(0), P(w of stage 1)), [Orabona10, line 12 of Algorithm 1].
    Symbols: M classes, F kernels, θ̄ → `ThetaIterate`, ‖θ^j‖² → ``s``, s_t → S.
    Differs from the paper: permuted epochs instead of sampling with replacement; weights multiply the loss of
    their sample; ``polish`` beats the last iterate (False is the paper's algorithm).

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
    batch: int = 128
    record_every: int | None = None
    tol: float | None = None
    max_epochs: int = 480

    def check(self) -> None:
        check_count("OnlineBatch.online_epochs", self.online_epochs)
        check_count("OnlineBatch.batch_epochs", self.batch_epochs, least=0)
        check_count("OnlineBatch.batch", self.batch)
        check_number("OnlineBatch.eta", self.eta, above=0.0)
        check_number("OnlineBatch.tol", self.tol, above=0.0, below=1.0, optional=True)
        check_count("OnlineBatch.max_epochs", self.max_epochs)

    def _run(self, run: StochasticRun, tracker: BoundTracker) -> None:
        while run.stage == 0:
            updates = run.run_epoch(lambda run, k: online_step(run.iterate, k, self.eta))
            if updates == 0 or run.epoch >= self.online_epochs:
                upper = _add_iterate(tracker, run.iterate.coef, rescale=False)
                at_zero = float(run.problem.weight.mean())  # P(0)
                run.stage, run.epoch = 1, 0
                run.R = float(np.sqrt(2.0 * min(upper, at_zero) / run.problem.lam))
        epochs = self.batch_epochs
        self._run_averaged(run, tracker, proximal_step, epochs)
        while self.tol is not None and 0 < epochs < self.max_epochs and self._gap(run) > self.tol:
            epochs = min(2 * epochs, self.max_epochs)
            run.iterate.start_averaging()  # over the epochs to come, which are at least half of all
            self._run_averaged(run, tracker, proximal_step, epochs)

    def _gap(self, run: StochasticRun) -> float:
        """Return the relative gap that the iterate proves."""
        bounds, B = BoundTracker(run.problem, None), self._returned(run)
        _add_iterate(bounds, B, self.polish)
        _add_feasible_iterate(bounds, B)
        return bounds.certificate.relative_gap


@dataclass
class Pegasos(StochasticSolver):
    r"""Stochastic subgradient steps of length q/(λt), projected on the ball that holds the optimum.

    θ̄ ← min(1, q(P(0)/λ)^{1/2}/‖·‖)((1 − 1/t) θ̄ + (q/λt) z̄_t), [Orabona10, Sec. 4.1] after [Shalev07].

    Parameters
    ----------
    epochs : passes over the permuted samples.
    polish : return the mean of the second half of the steps, times its best multiple; False: the last one.
    batch : samples whose kernel rows are computed together; it changes speed, not the iterates.
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
    batch: int = 128
    record_every: int | None = None

    def check(self) -> None:
        check_count("Pegasos.epochs", self.epochs)
        check_count("Pegasos.batch", self.batch)

    def _run(self, run: StochasticRun, tracker: BoundTracker) -> None:
        self._run_averaged(run, tracker, subgradient_step, self.epochs)
