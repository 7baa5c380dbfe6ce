"""The search of one who names nothing: candidate kernels, averaged by the log loss of held-out samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from threading import Event
from typing import Any

import numpy as np

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.prepared import PREPARATIONS, PreparedBank
from kernelweave.bank.protocol import FittedKernels
from kernelweave.estimators.grid_search import SearchFold, SplittableSamples
from kernelweave.estimators.held_out_loss import (
    average_weights,
    best_temperature,
    log_losses,
    shares,
    unbiased_alignment,
)
from kernelweave.estimators.progress import interruptible
from kernelweave.kernels import Gaussian, Kernel, Laplacian, Linear
from kernelweave.learners import Hinge

# The values of C, by half decades, and where the search among them begins.
COSTS = (*(float(f"{first}e{power}") for power in range(-3, 4) for first in (1, 3)), 1e4)
COST = 3.0
# The log loss that another step has to gain.
LEAST_GAIN = 1e-4
# The relative gap of the held-out classifiers.
INNER_TOL = 1e-3


@dataclass(frozen=True)
class Candidate:
    """One way to look at every view: how its numbers are prepared, and the kernels that share its weight."""

    preparation: str
    kernels: tuple[Kernel, ...]

    @property
    def name(self) -> str:
        """What the results call it."""
        return f"{self.preparation}·{' + '.join(kernel.label for kernel in self.kernels)}"

    def members(self, fitted: FittedKernels) -> dict[str, Indices]:
        """Return the numbers of its kernels on every view."""
        found, names = {}, labels_on_view(fitted)
        word = PREPARATIONS[self.preparation]
        plain = {kernel.label for kernel in self.kernels}
        prepared = {f"{word}·{label}" if word else label for label in plain}
        for view, own in kernels_by_view(fitted).items():
            labels = {m: names[m] for m in own}
            wanted = prepared if prepared & set(labels.values()) else plain
            found[view] = np.array([m for m in own if labels[m] in wanted], dtype=np.intp)
        return found

    def is_of_its_own(self, fitted: FittedKernels) -> bool:
        """Tell whether any view has numbers that are prepared its way; else it repeats another candidate."""
        word = PREPARATIONS[self.preparation]
        return not word or any(label.startswith(f"{word}·") for label in labels_on_view(fitted))


def candidates() -> list[Candidate]:
    """Return the candidates: linear and smooth, columns alike or in their own units, outliers seen or not."""
    both = (Linear(), Laplacian())
    return [
        *(Candidate(preparation, both) for preparation in PREPARATIONS),
        *(Candidate("zscores", (kernel,)) for kernel in both),
        *(
            Candidate("centred", (kernel,))
            for kernel in (Gaussian(), Laplacian(scale=4.0), Gaussian(scale=4.0))
        ),
    ]


def union_bank(chosen: Sequence[Candidate], like: PreparedBank) -> PreparedBank:
    """Return the bank of all kernels of some candidates, each once."""
    kernels: dict[str, list[Kernel]] = {}
    for candidate in chosen:
        own = kernels.setdefault(candidate.preparation, [])
        own += [kernel for kernel in candidate.kernels if kernel not in own]
    return PreparedBank(kernels, like.views, like.transform, like.scaling)


def kernels_by_view(fitted: FittedKernels) -> dict[str, list[int]]:
    """Return the numbers of the kernels on every view."""
    found: dict[str, list[int]] = {}
    for m, view in enumerate(fitted.view_names):
        found.setdefault(view, []).append(m)
    return found


def labels_on_view(fitted: FittedKernels) -> list[str]:
    """Return the names of the kernels without their views, and without the number of equal names."""
    return [
        name[len(view) + 1 :].partition("#")[0]
        for name, view in zip(fitted.names, fitted.view_names, strict=True)
    ]


# -- the kernels of a candidate


def candidate_weights(
    fitted: FittedKernels,
    chosen: Sequence[Candidate],
    Y: Matrix,
    weight: Vector,
    totals: AnyArray | None = None,
) -> Matrix:
    """Return the weight of every kernel in every candidate, of shape (candidates, M); each sums to one.

    A view counts by the unbiased alignment of the candidate's mean kernel on it, shared evenly by these kernels.
    The candidates' training kernels are added to ``totals``, of shape (candidates, n, n), on the way.
    """
    members, n_views = [one.members(fitted) for one in chosen], len(kernels_by_view(fitted))
    aligned = np.ones((len(chosen), n_views))
    if n_views > 1 or totals is not None:
        for v, (view, Ks) in enumerate(_grams_by_view(fitted)):
            for c, own in enumerate(members):
                mean = np.mean([Ks[m] for m in own[view]], axis=0)
                if n_views > 1:
                    aligned[c, v] = unbiased_alignment(mean, Y, weight)
                if totals is not None:
                    totals[c] += aligned[c, v] * mean
    found = np.zeros((len(chosen), len(fitted)))
    for c, own in enumerate(members):
        for share, numbers in zip(shares(aligned[c]), own.values(), strict=True):
            found[c, numbers] = share / numbers.size
        if totals is not None and aligned[c].any():
            totals[c] /= aligned[c].sum()
        elif totals is not None:  # no view is aligned: all count alike
            for m, K in enumerate(fitted.grams()):
                totals[c] += found[c, m] * K
    return found


def _grams_by_view(fitted: FittedKernels) -> Iterator[tuple[str, dict[int, Matrix]]]:
    """Yield the Gram matrices of one view after the other, by their numbers; kernels of a block share distances."""
    views = kernels_by_view(fitted)
    every = slice(0, fitted.n_samples)
    values = chain.from_iterable(source.block(every, every) for source in fitted.sources())
    held: dict[int, Matrix] = {}
    for view, own in views.items():
        while not held.keys() >= set(own):
            m, K = next(values)
            held[m] = K
        yield view, {m: held.pop(m) for m in own}


# -- held-out decision values


@dataclass(frozen=True)
class HeldOut:
    """One fold: the kernels of all candidates between its training samples, and to those held out.

    ``present`` are the classes among the training samples, as numbers among all classes.
    """

    train: AnyArray = field(repr=False)  # (candidates, n, n), float32
    test: AnyArray = field(repr=False)  # (candidates, held out, n), float32
    Y: Matrix = field(repr=False)
    weight: Vector = field(repr=False)
    present: Indices = field(repr=False)
    n_classes: int

    @classmethod
    def of(
        cls, reader: Any, chosen: Sequence[Candidate], samples: SplittableSamples, fold: SearchFold
    ) -> HeldOut:
        """Return a fold; everything that is learnt, is learnt on its training samples."""
        seen, unseen = samples.part(fold.train, fold.train), samples.part(fold.test, fold.train)
        data = reader._validate(seen.X, seen.y, seen.weight)
        n, n_out = fold.train.size, fold.test.size
        train, test = (np.zeros((len(chosen), size, n), dtype=np.float32) for size in (n, n_out))
        weights = candidate_weights(data.kernels, chosen, data.Y, data.weight, train)
        for m, K in data.kernels.cross(unseen.X):
            for c in np.flatnonzero(weights[:, m]):
                test[c] += weights[c, m] * K
        classes = np.unique(samples.y)
        return cls(train, test, data.Y, data.weight, np.searchsorted(classes, data.classes), classes.size)

    def values(self, mixture: Vector, C: float, start: AnyArray | None) -> tuple[AnyArray, AnyArray]:
        """Return the decision values of the held-out samples for a mixture of candidates, and the coefficients."""
        used = np.flatnonzero(mixture)
        K, K_out = (
            np.tensordot(mixture[used], each[used].astype(np.float64), 1) for each in (self.train, self.test)
        )
        binary = self.Y.shape[1] == 1
        learner: Any = Hinge(C) if binary else Hinge(C).for_columns()
        solved = learner.solve(K, self.Y[:, 0] if binary else self.Y, self.weight, start, INNER_TOL)
        return self._of_all_classes(K_out @ solved.coef + solved.intercept), solved.coef

    def _of_all_classes(self, values: AnyArray) -> AnyArray:
        """Return the values of all classes: one that no training sample has is refused by a margin of one."""
        if self.present.size == self.n_classes:
            return values
        found = np.full((len(values), self.n_classes), -1.0)
        found[:, self.present] = np.column_stack([-values, values]) if values.ndim == 1 else values
        return found


@dataclass
class HeldOutSearch:
    """Held-out losses of mixtures of candidates, every sample's without having learnt from it.

    ``reader`` fits the kernels of all candidates; ``done`` is told of every mixture. The kernels of the folds are
    kept where they fit into ``memory`` bytes, else computed again for every visit.
    """

    reader: Any
    chosen: Sequence[Candidate]
    samples: SplittableSamples
    folds: Sequence[SearchFold]
    memory: float
    n_threads: int
    done: Callable[[], None]
    _kept: dict[int, HeldOut] = field(default_factory=dict, repr=False)
    _starts: dict[int, AnyArray] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.classes, self._index = np.unique(self.samples.y, return_inverse=True)
        # A sample that several folds hold out counts in each.
        self.rows = np.concatenate([fold.test for fold in self.folds])
        self.index = self._index[self.rows]
        given = self.samples.weight
        self.weight = shares(np.ones(self.rows.size) if given is None else given[self.rows])
        entries = sum((fold.train.size + fold.test.size) * fold.train.size for fold in self.folds)
        self._fits = 4.0 * len(self.chosen) * entries <= self.memory

    def outcomes(self, mixtures: Matrix, C: float) -> list[HeldOutOutcome]:
        """Return what the held-out samples say of every mixture, one per row, at one C."""
        jobs = [partial(self._visit, fold, mixtures, C) for fold in self.folds]
        with blas_threads(1):
            visits = interruptible(jobs, self.n_threads)
        return [self._outcome(np.concatenate(parts), C) for parts in zip(*visits, strict=True)]

    def _visit(self, fold: SearchFold, mixtures: Matrix, C: float, stop: Event) -> list[AnyArray]:
        """Return the decision values of the held-out samples of one fold, for every mixture."""
        if stop.is_set():
            raise KeyboardInterrupt
        held = self._kept.get(fold.number)
        if held is None:
            held = HeldOut.of(self.reader, self.chosen, self.samples, fold)
        if self._fits:
            self._kept[fold.number] = held
        found, start = [], self._starts.get(fold.number)
        for mixture in mixtures:
            values, start = held.values(mixture, C, start)
            found.append(values)
            self.done()
        assert start is not None
        self._starts[fold.number] = start
        return found

    def _outcome(self, values: AnyArray, C: float) -> HeldOutOutcome:
        temperature = best_temperature(values, self.index, self.weight)
        losses = log_losses(values, self.index, temperature)
        predicted = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        right = float(self.weight @ (predicted == self.index))
        return HeldOutOutcome(C, temperature, float(self.weight @ losses), right)


@dataclass(frozen=True)
class HeldOutOutcome:
    """What held-out samples say of a mixture at one C."""

    C: float
    temperature: float
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Average:
    """The average of the candidates, and its C: ``outcomes`` of the candidates at C = 3, ``path`` of the average."""

    outcomes: list[HeldOutOutcome]
    weights: Vector
    path: list[HeldOutOutcome]

    @property
    def best(self) -> HeldOutOutcome:
        """The outcome at the chosen C; of equal ones the smallest C."""
        return min(self.path, key=lambda one: (one.loss, one.C))

    @property
    def ends_at_edge(self) -> bool:
        """Whether the loss still falls where the values of C end."""
        return self.best.C in (COSTS[0], COSTS[-1])


def average(search: HeldOutSearch) -> Average:
    """Weigh the candidates by their held-out losses, then choose C for their average."""
    outcomes = search.outcomes(np.eye(len(search.chosen)), COST)
    n_samples = np.unique(search.rows).size
    weights = average_weights(np.array([one.loss for one in outcomes]), n_samples)
    return Average(outcomes, weights, best_cost(lambda C: search.outcomes(weights[None], C)[0]))


def best_cost(outcome: Callable[[float], HeldOutOutcome]) -> list[HeldOutOutcome]:
    """Return the outcomes at the values of C visited: from 3 on, up and else down, while the loss falls."""
    path, start = [outcome(COST)], COSTS.index(COST)
    for onwards in (COSTS[start + 1 :], COSTS[:start][::-1]):
        last = path[0]
        for C in onwards:
            path.append(outcome(C))
            if path[-1].loss > last.loss - LEAST_GAIN:
                break
            last = path[-1]
        if last is not path[0]:  # it fell this way, so it rises the other
            break
    return path
