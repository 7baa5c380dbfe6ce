"""Output ambiguity: labels that are not known, under constraints on their number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.weak_labels.protocol import Candidate

# Rows of the combined kernel made at a time: what is held besides it stays small.
ROWS = 256


class Labelings(ABC):
    """Vectors of ±1: the points are the samples, and A(h) = diag(h)."""

    known: Vector  # ±1 where the label is known, 0 where it is not

    @property
    def n_samples(self) -> int:
        return int(self.known.size)

    @property
    def n_points(self) -> int:
        return int(self.known.size)

    @cached_property
    def free(self) -> Indices:
        return np.flatnonzero(self.known == 0.0)

    @property
    def n_ambiguous(self) -> int:
        return int(self.free.size)

    def spread(self, candidate: Candidate, alpha: Vector) -> Vector:
        return candidate * alpha

    def gather(self, candidate: Candidate, values: Vector) -> Vector:
        return candidate * values

    def add(self, K: Matrix, candidates: Sequence[Candidate], weights: Vector, out: Matrix) -> None:
        used = np.flatnonzero(weights).tolist()
        if not used:
            return
        Y = np.array([candidates[t] for t in used], dtype=np.float64).T
        weighted = Y * weights[used]
        for start in range(0, self.n_samples, ROWS):
            rows = slice(start, start + ROWS)
            block = weighted[rows] @ Y.T
            block *= K[rows]
            out[rows] += block

    def best(self, alpha: Vector, values: Vector) -> Candidate:
        return self.nearest(alpha * values)

    @abstractmethod
    def nearest(self, scores: Vector) -> Candidate:
        """Return the legal labeling with the largest scores'y."""

    @abstractmethod
    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]: ...

    @abstractmethod
    def everything(self) -> Iterator[Candidate]: ...

    def agreement(self, candidate: Candidate, alpha: Vector, K: Matrix) -> float | None:
        told = np.flatnonzero(self.known)
        if told.size == 0 or self.free.size == 0:
            return None
        scores = K[np.ix_(told, self.free)] @ (candidate * alpha)[self.free]
        return float(self.known[told] @ scores)

    def mirror(self, candidate: Candidate) -> Candidate | None:
        return self.nearest(-candidate.astype(np.float64))

    def oriented(self, candidate: Candidate, scores: Vector) -> Candidate:
        # Without any known label y and -y make the same kernel, but only one of them adds to the classifier.
        opposite = -candidate
        turn = not self.known.any() and float(candidate @ scores) < 0.0 and self._counts_fit(opposite)
        return opposite if turn else candidate

    def contains(self, candidate: Candidate) -> bool:
        fits = bool(np.isin(candidate, (-1, 1)).all())
        told = self.known != 0.0
        return fits and bool((candidate[told] == self.known[told]).all()) and self._counts_fit(candidate)

    def key(self, candidate: Candidate) -> bytes:
        # Without any known label y and -y make the same kernel.
        sign = candidate[0] if not self.known.any() else 1
        return (candidate * sign).astype(np.int8).tobytes()

    @abstractmethod
    def _counts_fit(self, candidate: Candidate) -> bool: ...


@dataclass(frozen=True)
class Balanced(Labelings):
    r"""Labelings that keep the known labels and give between ``fewest`` and ``most`` of the others +1.

    Parameters
    ----------
    known : ±1 per sample, 0 where the label is not known.
    fewest, most : bounds on the number of positives among the samples without label.

    Notes
    -----
    The set 𝒴 of [Xu14, Example 1] with a balance constraint; fewest = most fixes the share of positives.
    Differs from the paper: the count may lie in an interval.

    Examples
    --------
    >>> import numpy as np
    >>> Balanced(np.array([1.0, 0.0, 0.0, 0.0]), 1, 1).nearest(np.array([-9.0, 0.2, 0.5, 0.1]))
    array([ 1, -1,  1, -1], dtype=int8)

    """

    known: Vector
    fewest: int
    most: int

    def nearest(self, scores: Vector) -> Candidate:
        y = np.where(self.known != 0.0, self.known, -1.0).astype(np.int8)
        values = scores[self.free]
        count = int(np.clip(np.count_nonzero(values > 0.0), self.fewest, self.most))
        # Stable, so that ties fall the same way every time.
        y[self.free[np.argsort(-values, kind="stable")[:count]]] = 1
        return y

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        up, down = self.free[candidate[self.free] > 0], self.free[candidate[self.free] < 0]
        flips = [(i,) for i in up if up.size > self.fewest] + [(j,) for j in down if up.size < self.most]
        for which in flips + [(i, j) for i in up for j in down]:
            near = candidate.copy()
            near[list(which)] *= -1
            yield near

    def everything(self) -> Iterator[Candidate]:
        for count in range(self.fewest, self.most + 1):
            for chosen in combinations(self.free, count):
                y = np.where(self.known != 0.0, self.known, -1.0).astype(np.int8)
                y[list(chosen)] = 1
                yield y

    def _counts_fit(self, candidate: Candidate) -> bool:
        return self.fewest <= int((candidate[self.free] > 0).sum()) <= self.most
