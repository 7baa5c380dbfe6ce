"""What the stochastic algorithms share: permuted epochs, checkpoints, bounds at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix
from kernelweave.multiclass.certificate import Evaluation, clipped, evaluate
from kernelweave.multiclass.checkpoint import Checkpoint, generator_state, restored_generator
from kernelweave.multiclass.iterate import Iterate
from kernelweave.multiclass.problem import PNormProblem
from kernelweave.multiclass.result import PNormResult, Tracker
from kernelweave.solvers.problem import Progress

# Samples whose rows are made together.
BATCH = 128
Step = Callable[[Iterate, int, int], bool]


@dataclass
class Epochs:
    """Runs steps over permuted epochs; where it stands can be saved between two batches."""

    problem: PNormProblem
    rng: np.random.Generator
    iterate: Iterate
    batch: int = BATCH
    checkpoint: Checkpoint | None = None
    stage: int = 0
    epoch: int = 0
    position: int = 0
    updates: int = 0
    seen: int = 0
    order: AnyArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    extra: dict[str, float] = field(default_factory=dict)

    def run(self, step: Step, extra: Callable[[], dict[str, float]] = dict) -> int:
        """Run one epoch, or the rest of one; return how many of its steps changed the iterate."""
        n = self.problem.n_samples
        if self.order.size == 0:
            self.order, self.position, self.updates = self.rng.permutation(n), 0, 0
        while self.position < n:
            places = self.order[self.position : self.position + self.batch]
            self.iterate.meet(places)
            for k, i in enumerate(places):
                self.updates += step(self.iterate, k, int(self.problem.y[i]))
            self.position += places.size
            self.seen += places.size
            if self.checkpoint is not None and self.checkpoint.due():
                self.extra = extra()
                self.checkpoint.save(self.state())
        self.order = self.order[:0]
        self.epoch += 1
        return self.updates

    def state(self) -> dict[str, Any]:
        counters = {name: getattr(self, name) for name in ("stage", "epoch", "position", "updates", "seen")}
        numbers = {f"extra_{name}": value for name, value in self.extra.items()}
        return (
            self.iterate.state()
            | counters
            | numbers
            | {"order": self.order, "rng": generator_state(self.rng)}
        )

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one."""
        state = None if self.checkpoint is None else self.checkpoint.load()
        if state is None:
            return
        self.iterate.restore(state)
        for name in ("stage", "epoch", "position", "updates", "seen"):
            setattr(self, name, int(state[name]))
        self.order, self.rng = state["order"], restored_generator(state["rng"])
        self.extra = {
            name.removeprefix("extra_"): float(value)
            for name, value in state.items()
            if name.startswith("extra_")
        }

    def finish(
        self, tracker: Tracker, B: Matrix, rescale: bool, *, prove: bool, stopped: str | None = None
    ) -> PNormResult:
        """Bound the optimum by B and return it as the result."""
        tracker.best, tracker.upper = None, np.inf  # the algorithm's own answer, not the best on the way
        bound(tracker, B, rescale, prove=prove)
        if self.checkpoint is not None and stopped is None:
            self.checkpoint.clear()
        return tracker.result(self.seen / self.problem.n_samples, stopped or "epochs")


def bound(tracker: Tracker, B: Matrix, rescale: bool, *, prove: bool = True) -> Evaluation:
    """Take the iterate with coefficients B = (q/λN) A into account: P of w, and D of A moved into its set."""
    problem = tracker.problem
    A = (problem.scale / problem.q) * B
    seen = evaluate(problem, A, images(problem, A), rescale=rescale)
    tracker.add(A, seen)
    if prove:
        inside = clipped(A, problem.y, problem.weight)
        if not np.array_equal(inside, A):
            lower = evaluate(problem, inside, images(problem, inside)).lower
            tracker.lower = max(tracker.lower, lower)
    return seen


def images(problem: PNormProblem, A: Matrix) -> AnyArray:
    """Return G_j = K_jA as (kernels, classes, N), from the support alone."""
    support = np.flatnonzero(A.any(axis=1))
    G = problem.rows.products(np.arange(problem.n_samples), support, A[support])
    return np.ascontiguousarray(G.transpose(0, 2, 1))


def start(
    problem: PNormProblem,
    rng: np.random.Generator,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
    batch: int,
) -> tuple[Epochs, Tracker]:
    """Return the epochs, resumed where there is a checkpoint, and the tracker of their bounds."""
    epochs = Epochs(problem, rng, Iterate(problem), batch, checkpoint)
    epochs.resume()
    return epochs, Tracker(problem, progress)


def rival(total: AnyArray, y: int) -> tuple[int, float]:
    """Return the best class but y, and the multiclass hinge loss [Orabona10, Eq. (5)]."""
    others = total.copy()
    others[y] = -np.inf
    best = int(others.argmax())
    return best, max(0.0, 1.0 - float(total[y] - total[best]))
