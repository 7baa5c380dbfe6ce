"""Bags: instance labels under the bags' labels, and the key instances that stand for positive bags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.weak_labels.labelings import Labelings
from kernelweave.weak_labels.protocol import Candidate


def key_counts(sizes: AnyArray, share: float | None) -> Indices:
    """Return how many instances of each bag are at least positive: one, or this share of it."""
    return np.maximum(1, np.ceil((share or 0.0) * np.asarray(sizes) - 1e-9)).astype(np.intp)


def highest(scores: Vector, members: Sequence[Indices], counts: Indices) -> Indices:
    """Return the places of the ``counts`` highest scores of every bag; ties go to the first."""
    sizes = np.array([places.size for places in members])
    places, owner = np.concatenate(members), np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((-scores[places], owner))
    rank = np.arange(places.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(places[order[rank < counts[owner]]])


@dataclass(frozen=True)
class BagLabels(Labelings):
    r"""Labels of instances: −1 in negative bags, at least ``counts`` times +1 in each positive one.

    Parameters
    ----------
    known : −1 for the instances of negative bags, 0 for the others.
    members : for each positive bag the places of its instances.
    counts : for each of them the least number of positive instances.

    Notes
    -----
    The multi-instance constraints of [Xu14, Example 1]. Symbols: share of positives σ → counts_i / n_i.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> labels = BagLabels(np.array([-1.0, 0.0, 0.0]), (np.array([1, 2]),), np.array([1]))
    >>> labels.nearest(np.array([3.0, -0.5, -0.2]))
    array([-1, -1,  1], dtype=int8)

    """

    known: Vector
    members: tuple[Indices, ...]
    counts: Indices

    def nearest(self, scores: Vector) -> Candidate:
        y = np.where(scores > 0.0, 1, -1).astype(np.int8)
        y[self.known != 0.0] = self.known[self.known != 0.0]
        y[highest(scores, self.members, self.counts)] = 1
        return y

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        for places, count in zip(self.members, self.counts, strict=True):
            up, down = places[candidate[places] > 0], places[candidate[places] < 0]
            flips = [(j,) for j in down] + [(i,) for i in up if up.size > count]
            for which in flips + [(i, j) for i in up for j in down]:
                near = candidate.copy()
                near[list(which)] *= -1
                yield near

    def everything(self) -> Iterator[Candidate]:
        def ways(places: Indices, count: int) -> list[tuple[int, ...]]:
            sizes = range(int(count), places.size + 1)
            return [chosen for size in sizes for chosen in combinations(places, size)]

        options = [ways(places, count) for places, count in zip(self.members, self.counts, strict=True)]
        for chosen in product(*options):
            y = np.full(self.n_samples, -1, dtype=np.int8)
            for places in chosen:
                y[list(places)] = 1
            yield y

    def _counts_fit(self, candidate: Candidate) -> bool:
        positives = [int((candidate[places] > 0).sum()) for places in self.members]
        return bool((np.array(positives) >= self.counts).all())


@dataclass(frozen=True)
class KeyInstances:
    r"""Selections: a positive bag is the mean of its key instances, a negative one its single point.

    Parameters
    ----------
    signs : ±1 per bag.
    members : for each bag the places of its points; negative bags have one, the mean of their instances.
    counts : for each bag the number of points that stand for it.

    Notes
    -----
    The set Δ of [Xu14, Example 2] with one key instance per bag, or a share of them: the entry of two bags is
    the mean kernel value over the chosen instances of both, the convolution of the example.
    Differs from the paper: means instead of sums, so that bags with more key instances are not longer.

    Examples
    --------
    >>> import numpy as np
    >>> keys = KeyInstances(np.array([1, -1]), (np.array([0, 1]), np.array([2])), np.array([1, 1]))
    >>> keys.nearest(np.array([0.1, 0.4, 0.0]))
    array([0, 1, 1], dtype=int8)

    """

    signs: AnyArray
    members: tuple[Indices, ...]
    counts: Indices

    @property
    def n_samples(self) -> int:
        return len(self.members)

    @cached_property
    def n_points(self) -> int:
        return int(sum(places.size for places in self.members))

    @cached_property
    def _owner(self) -> Indices:
        owner = np.empty(self.n_points, dtype=np.intp)
        for bag, places in enumerate(self.members):
            owner[places] = bag
        return owner

    @property
    def n_ambiguous(self) -> int:
        pairs = zip(self.members, self.counts, strict=True)
        return int(sum(places.size for places, count in pairs if places.size > count))

    def spread(self, candidate: Candidate, alpha: Vector) -> Vector:
        return np.asarray(candidate * (self.signs * alpha / self.counts)[self._owner])

    def gather(self, candidate: Candidate, values: Vector) -> Vector:
        sums = np.bincount(self._owner, weights=candidate * values, minlength=self.n_samples)
        return np.asarray(self.signs * sums / self.counts)

    def add(self, K: Matrix, candidates: Sequence[Candidate], weights: Vector, out: Matrix) -> None:
        for t in np.flatnonzero(weights).tolist():
            A = self._rows(candidates[t])
            out += weights[t] * np.asarray(A @ np.asarray(A @ K).T)

    def best(self, alpha: Vector, values: Vector) -> Candidate:  # noqa: ARG002 - α ≥ 0 changes no order
        return self.nearest(values)

    def nearest(self, scores: Vector) -> Candidate:
        delta = np.zeros(self.n_points, dtype=np.int8)
        delta[highest(scores, self.members, self.counts)] = 1
        return delta

    def agreement(self, candidate: Candidate, alpha: Vector, K: Matrix) -> float | None:  # noqa: ARG002
        return None  # every bag's label is known: nothing can be the wrong way round

    def mirror(self, candidate: Candidate) -> Candidate | None:  # noqa: ARG002
        return None

    def oriented(self, candidate: Candidate, scores: Vector) -> Candidate:  # noqa: ARG002
        return candidate

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        for places in self.members:
            chosen, others = places[candidate[places] == 1], places[candidate[places] == 0]
            for old, new in product(chosen, others):
                near = candidate.copy()
                near[old], near[new] = 0, 1
                yield near

    def everything(self) -> Iterator[Candidate]:
        options = [combinations(places, int(k)) for places, k in zip(self.members, self.counts, strict=True)]
        for chosen in product(*options):
            delta = np.zeros(self.n_points, dtype=np.int8)
            for places in chosen:
                delta[list(places)] = 1
            yield delta

    def contains(self, candidate: Candidate) -> bool:
        sums = np.bincount(self._owner, weights=candidate, minlength=self.n_samples)
        return bool(np.isin(candidate, (0, 1)).all()) and bool((sums == self.counts).all())

    def key(self, candidate: Candidate) -> bytes:
        return candidate.tobytes()

    def _rows(self, candidate: Candidate) -> sparse.csr_array:
        chosen = np.flatnonzero(candidate)
        owner = self._owner[chosen]
        return sparse.csr_array(
            ((self.signs / self.counts)[owner], (owner, chosen)), shape=(self.n_samples, self.n_points)
        )
