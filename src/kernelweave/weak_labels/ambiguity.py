"""What is ambiguous, as a set of candidates: labels of samples or instances, or the key instances of bags.

A candidate h says how samples are made of points: φ̃_i = Σ_j A(h)_ij φ(x_j). Its input-output kernel is
A(h) K A(h)' with K the kernel of the points [Xu14, Def. 4.7]. For labelings the points are the samples and
A(h) = diag(h); for key instances row i of A(h) is the mean of the instances chosen from bag i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kernelweave._typing import AnyArray, Indices, Matrix, Vector

# One way to resolve what is ambiguous: a label ±1 per sample, or 1 for every point that was chosen.
Candidate: TypeAlias = NDArray[np.int8]
Groups: TypeAlias = Sequence[Indices]


@dataclass(frozen=True)
class Ambiguity(ABC):
    """A set of candidates h: in each group of entries a number of them within bounds is chosen, h_j = 1.

    Parameters
    ----------
    groups : the entries that may be chosen, in groups.
    min_chosen, max_chosen : bounds on the number chosen from each group.
    """

    unchosen: ClassVar[int]  # the value of h_j otherwise

    groups: Groups
    min_chosen: Indices
    max_chosen: Indices

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """The number of samples, one dual coefficient each."""

    @property
    @abstractmethod
    def n_points(self) -> int:
        """The number of points, the size of the kernel matrices and of a candidate."""

    @abstractmethod
    def to_points(self, candidate: Candidate, alpha: Vector) -> Vector:
        """Return A(h)'α, the coefficients of the points that belong to coefficients of the samples."""

    @abstractmethod
    def to_samples(self, candidate: Candidate, values: Vector) -> Vector:
        """Return A(h) s, the values of the samples that belong to values of the points."""

    @abstractmethod
    def add_kernels(self, K: Matrix, candidates: Sequence[Candidate], weights: Vector, out: Matrix) -> None:
        """Add Σ_t weights_t A(h_t) K A(h_t)' to ``out``."""

    @abstractmethod
    def linear_maximizer(self, alpha: Vector, values: Vector) -> Candidate:
        """Return the candidate with the largest values'A(h)'α."""

    @property
    def n_ambiguous(self) -> int:
        """How many entries of a candidate are not determined by the bounds."""
        bounds = self._bounded_groups()
        return sum(group.size for group, least, most in bounds if least < most or 0 < most < group.size)

    def from_scores(self, scores: Vector) -> Candidate:
        """Return the candidate that follows scores of the points most closely: largest Σ_j h_j scores_j."""
        places, owner, first = self._entries
        positive = np.bincount(owner[scores[places] > 0.0], minlength=first.size)
        counts = np.clip(positive, self.min_chosen, self.max_chosen)
        order = np.lexsort((-scores[places], owner))  # ties go to the first
        rank = np.arange(places.size) - first[owner]
        return self._with_chosen(places[order[rank < counts[owner]]])

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield the candidates that differ by one flip, or by one swap inside a group."""
        for group, least, most in self._bounded_groups():
            chosen, others = group[candidate[group] == 1], group[candidate[group] != 1]
            changes: list[tuple[int, ...]] = [(i,) for i in chosen if chosen.size > least]
            changes += [(j,) for j in others if chosen.size < most]
            for change in changes + list(product(chosen, others)):
                near, places = candidate.copy(), list(change)
                near[places] = np.where(near[places] == 1, self.unchosen, 1)
                yield near

    def all_candidates(self) -> Iterator[Candidate]:
        """Yield every candidate once."""
        choices = [
            [chosen for size in range(least, most + 1) for chosen in combinations(group, size)]
            for group, least, most in self._bounded_groups()
        ]
        for chosen in product(*choices):
            yield self._with_chosen(list(chain(*chosen)))

    def contains(self, candidate: Candidate) -> bool:
        """Return whether the candidate is in the set."""
        legal = bool(np.isin(candidate, (1, self.unchosen)).all())
        return legal and self._within_bounds(candidate)

    def mirror(self, candidate: Candidate) -> Candidate | None:  # noqa: ARG002
        """Return the candidate nearest to the opposite one, where known labels can tell the two apart."""
        return None

    def known_share(self, alpha: Vector) -> float:  # noqa: ARG002
        """Return the share of the coefficients whose samples have a known label."""
        return 1.0

    def label_agreement(self, candidate: Candidate, alpha: Vector, K: Matrix) -> float:  # noqa: ARG002
        """Return how well the ambiguous part alone predicts the known labels."""
        return 0.0

    def orient(self, candidate: Candidate, scores: Vector) -> Candidate:  # noqa: ARG002
        """Return, of the candidates with the same kernel, the one that follows the scores."""
        return candidate

    def key(self, candidate: Candidate) -> bytes:
        """Return the same bytes for candidates with the same kernel."""
        return candidate.tobytes()

    @cached_property
    def _entries(self) -> tuple[Indices, Indices, Indices]:
        """The entries of all groups one after the other, the group of each, and where each group begins."""
        sizes = np.array([group.size for group in self.groups], dtype=np.intp)
        return np.concatenate(self.groups), np.repeat(np.arange(sizes.size), sizes), np.cumsum(sizes) - sizes

    def _with_chosen(self, places: Indices | list[int]) -> Candidate:
        """Return the candidate in which these entries are chosen."""
        candidate = np.full(self.n_points, self.unchosen, dtype=np.int8)
        candidate[places] = 1
        return candidate

    def _within_bounds(self, candidate: Candidate) -> bool:
        chosen = np.array([np.count_nonzero(candidate[group] == 1) for group in self.groups])
        return bool(((self.min_chosen <= chosen) & (chosen <= self.max_chosen)).all())

    def _bounded_groups(self) -> Iterator[tuple[Indices, int, int]]:
        return zip(self.groups, self.min_chosen.tolist(), self.max_chosen.tolist(), strict=True)


@dataclass(frozen=True)
class Labelings(Ambiguity):
    r"""Vectors of ±1 that keep the known labels and bound the number of positives in groups of the others.

    Parameters
    ----------
    groups, min_chosen, max_chosen : the samples without label, and how many of each group may be positive.
    known : ±1 per sample, 0 where the label is not known.

    Notes
    -----
    The set 𝒴 of [Xu14, Example 1]: `balanced` is the balance constraint, `of_bags` the multi-instance one.
    Symbols: share of positives σ → min_chosen_i / n_i.
    Differs from the paper: the number of positives may lie in an interval.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.weak_labels import Labelings
    >>> one_positive = Labelings.balanced(np.array([1.0, 0.0, 0.0, 0.0]), 1, 1)
    >>> one_positive.from_scores(np.array([-9.0, 0.2, 0.5, 0.1]))
    array([ 1, -1,  1, -1], dtype=int8)

    """

    unchosen: ClassVar[int] = -1

    known: Vector

    @classmethod
    def balanced(cls, known: Vector, min_positives: int, max_positives: int) -> Labelings:
        """Return the labelings with a bounded number of positives among all samples without label."""
        unknown = np.flatnonzero(known == 0.0)
        return cls((unknown,), np.array([min_positives]), np.array([max_positives]), known)

    @classmethod
    def of_bags(cls, signs: Vector, sizes: Indices, min_positives: Indices) -> Labelings:
        """Return labelings of instances: −1 in negative bags, at least ``min_positives`` in positive ones.

        The instances of a bag stand together, in the order of the bags; ``min_positives`` has one number per
        bag, of which those of negative bags are ignored.
        """
        groups, positive = consecutive_groups(sizes), np.flatnonzero(signs > 0)
        known = np.repeat(np.where(signs > 0, 0.0, -1.0), sizes)
        return cls([groups[bag] for bag in positive], min_positives[positive], sizes[positive], known)

    @property
    def n_samples(self) -> int:
        return int(self.known.size)

    @property
    def n_points(self) -> int:
        return int(self.known.size)

    def to_points(self, candidate: Candidate, alpha: Vector) -> Vector:
        return candidate * alpha

    def to_samples(self, candidate: Candidate, values: Vector) -> Vector:
        return candidate * values

    def add_kernels(self, K: Matrix, candidates: Sequence[Candidate], weights: Vector, out: Matrix) -> None:
        # Σ_t w_t (y_t y_t') ∘ K = (Y diag(w) Y') ∘ K, a few rows at a time: no second matrix is held.
        used = np.flatnonzero(weights).tolist()
        if not used:
            return
        Y = np.array([candidates[t] for t in used], dtype=np.float64).T
        weighted = Y * weights[used]
        n_rows = 256
        for start in range(0, self.n_samples, n_rows):
            rows = slice(start, start + n_rows)
            block = weighted[rows] @ Y.T
            block *= K[rows]
            out[rows] += block

    def linear_maximizer(self, alpha: Vector, values: Vector) -> Candidate:
        return self.from_scores(alpha * values)

    def contains(self, candidate: Candidate) -> bool:
        labelled = self.known != 0.0
        keeps_labels = bool((candidate[labelled] == self.known[labelled]).all())
        return keeps_labels and super().contains(candidate)

    def mirror(self, candidate: Candidate) -> Candidate | None:
        # In bags only negative labels are known: they cannot tell a labeling from its mirror.
        both_known = bool((self.known > 0.0).any() and (self.known < 0.0).any())
        return self.from_scores(-candidate.astype(np.float64)) if both_known else None

    def known_share(self, alpha: Vector) -> float:
        total = float(alpha.sum())
        return float(alpha[self.known != 0.0].sum()) / total if total > 0.0 else 1.0

    def label_agreement(self, candidate: Candidate, alpha: Vector, K: Matrix) -> float:
        labelled, unknown = np.flatnonzero(self.known), np.flatnonzero(self.known == 0.0)
        scores = K[np.ix_(labelled, unknown)] @ (candidate * alpha)[unknown]
        return float(self.known[labelled] @ scores)

    def orient(self, candidate: Candidate, scores: Vector) -> Candidate:
        # Without any known label y and -y have the same kernel, but only one of them adds to the classifier.
        opposite = -candidate
        turn = not self.known.any() and float(candidate @ scores) < 0.0 and self._within_bounds(opposite)
        return opposite if turn else candidate

    def key(self, candidate: Candidate) -> bytes:
        # Without any known label y and -y have the same kernel.
        sign = 1 if self.known.any() else candidate[0]
        return (candidate * sign).astype(np.int8).tobytes()

    def _with_chosen(self, places: Indices | list[int]) -> Candidate:
        candidate = super()._with_chosen(places)
        candidate[self.known > 0.0] = 1
        return candidate


@dataclass(frozen=True)
class KeyInstances(Ambiguity):
    r"""Selections: a positive bag is the mean of its key instances, a negative bag its single point.

    Parameters
    ----------
    groups : for each bag its points; negative bags have one, the mean of their instances.
    min_chosen, max_chosen : for each bag the number of its key instances, both the same.
    signs : ±1 per bag.

    Notes
    -----
    The set Δ of [Xu14, Example 2] with one key instance per bag, or a share of them: the entry of two bags is
    the mean kernel value over the chosen instances of both, the convolution of the example.
    Differs from the paper: means instead of sums, so that bags with more key instances have no larger norm.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.weak_labels import KeyInstances
    >>> keys = KeyInstances.of_bags(np.array([1, -1]), (np.array([0, 1]), np.array([2])), np.array([1, 1]))
    >>> keys.from_scores(np.array([0.1, 0.4, 0.0]))
    array([0, 1, 1], dtype=int8)

    """

    unchosen: ClassVar[int] = 0

    signs: AnyArray

    @classmethod
    def of_bags(cls, signs: AnyArray, points: Groups, n_keys: Indices) -> KeyInstances:
        """Return the selections of ``n_keys`` key instances from the points of each bag."""
        return cls(points, n_keys, n_keys, signs)

    @property
    def n_samples(self) -> int:
        return len(self.groups)

    @cached_property
    def n_points(self) -> int:
        return sum(points.size for points in self.groups)

    @cached_property
    def _bag_of_point(self) -> Indices:
        bag = np.empty(self.n_points, dtype=np.intp)
        for number, points in enumerate(self.groups):
            bag[points] = number
        return bag

    def to_points(self, candidate: Candidate, alpha: Vector) -> Vector:
        return np.asarray(candidate * (self._shares(candidate) * alpha)[self._bag_of_point])

    def to_samples(self, candidate: Candidate, values: Vector) -> Vector:
        sums = np.bincount(self._bag_of_point, weights=candidate * values, minlength=self.n_samples)
        return np.asarray(self._shares(candidate) * sums)

    def add_kernels(self, K: Matrix, candidates: Sequence[Candidate], weights: Vector, out: Matrix) -> None:
        for t in np.flatnonzero(weights).tolist():
            chosen = np.flatnonzero(candidates[t])
            bag = self._bag_of_point[chosen]
            entries = self._shares(candidates[t])[bag], (bag, chosen)
            A = sparse.csr_array(entries, shape=(self.n_samples, self.n_points))
            out += weights[t] * mixed_kernel(A, K)

    def _shares(self, candidate: Candidate) -> Vector:
        """Return the sign of every bag, over the number chosen from it."""
        chosen = np.bincount(self._bag_of_point, weights=candidate, minlength=self.n_samples)
        return np.asarray(self.signs / chosen)

    def linear_maximizer(self, alpha: Vector, values: Vector) -> Candidate:  # noqa: ARG002
        return self.from_scores(values)  # α ≥ 0 scales the values of a bag: their order is the same


def consecutive_groups(sizes: Indices) -> list[Indices]:
    """Return the members of groups that stand one after the other."""
    return np.split(np.arange(int(sizes.sum())), np.cumsum(sizes)[:-1])


def selection_matrix(rows: Indices, n: int) -> sparse.csr_array:
    """Return the matrix A whose samples are single points, these of n."""
    return sparse.csr_array((np.ones(rows.size), (np.arange(rows.size), rows)), shape=(rows.size, n))


def means_matrix(groups: Groups, n: int) -> sparse.csr_array:
    """Return the matrix A whose samples are the means of groups of n points."""
    sizes = np.array([group.size for group in groups])
    owner = np.repeat(np.arange(sizes.size), sizes)
    return sparse.csr_array(((1.0 / sizes)[owner], (owner, np.concatenate(groups))), shape=(sizes.size, n))


def mixed_kernel(A: sparse.csr_array, K: Matrix) -> Matrix:
    """Return A K A', the kernel of samples that are mixtures of points."""
    return np.asarray(A @ np.asarray(A @ K).T)
