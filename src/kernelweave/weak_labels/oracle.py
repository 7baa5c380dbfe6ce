"""The most violated candidate of a kernel: a convex maximisation, by ascents from many starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from kernelweave._typing import Matrix, Vector
from kernelweave.weak_labels.ambiguity import Ambiguity, Candidate

# A relative rise of the value below this is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ScoredCandidate:
    """A candidate and its value α'A(h)KA(h)'α."""

    candidate: Candidate
    value: float


class Oracle(Protocol):
    """Find a candidate of large value for one kernel."""

    def find(
        self, K: Matrix, alpha: Vector, ambiguity: Ambiguity, starts: Sequence[Vector]
    ) -> ScoredCandidate:
        """Return a candidate; ``starts`` are scores of the points to begin searches from."""


@dataclass(frozen=True)
class Exhaustive:
    """Evaluate every candidate: exact, for a few ambiguous entries."""

    def find(
        self,
        K: Matrix,
        alpha: Vector,
        ambiguity: Ambiguity,
        starts: Sequence[Vector],  # noqa: ARG002
    ) -> ScoredCandidate:
        found = (
            ScoredCandidate(h, float(evaluate(K, alpha, ambiguity, [h])[1][0]))
            for h in ambiguity.all_candidates()
        )
        return max(found, key=lambda one: one.value)


@dataclass(frozen=True)
class MultiStart:
    r"""Ascents from given scores, leading eigenvectors and random directions, each with its mirror.

    Parameters
    ----------
    seed : seed of the random directions.
    n_eigenvectors, n_random : how many leading eigenvectors and random directions to start from.
    small : with up to this many ambiguous entries a search is cheap: it starts from twice as many random
        directions, and ends with single flips and swaps, of which there are about n²/4.
    max_steps : most steps of an ascent, and most flips and swaps after it.
    mirror_share : the mirror of the best candidate is taken where the known labels agree better with it and
        its value is at least this share of the best.
    contradicted_share : the same share where the known labels contradict the best candidate.

    Notes
    -----
    [Xu14, Eq. (4.11)] by the sorting heuristic. The value is convex in A(h)'α, so the maximiser of its
    linearisation is never lower; where that ends depends on the start. No start proves a global optimum.
    Differs from the paper: many starts, mirrors, and single changes at the end for small problems.
    """

    seed: int = 0
    n_eigenvectors: int = 2
    n_random: int = 2
    small: int = 40
    max_steps: int = 100
    mirror_share: float = 0.95
    contradicted_share: float = 0.5

    def find(
        self, K: Matrix, alpha: Vector, ambiguity: Ambiguity, starts: Sequence[Vector]
    ) -> ScoredCandidate:
        directions = [*starts, *self._eigenvectors(K, alpha, ambiguity), *self._random(ambiguity)]
        both = [sign * scores for scores in directions for sign in (1.0, -1.0)]
        first = {ambiguity.key(h): h for h in map(ambiguity.from_scores, both)}
        ends = ascend(K, alpha, ambiguity, list(first.values()), self.max_steps)
        best = max(ends, key=lambda end: end.value)
        if 0 < ambiguity.n_ambiguous <= self.small:
            best = self._local_search(K, alpha, ambiguity, best)
        return self._best_or_mirror(K, alpha, ambiguity, best)

    def _eigenvectors(self, K: Matrix, alpha: Vector, ambiguity: Ambiguity) -> list[Vector]:
        """Return leading eigenvectors of the quadratic form: of α∘K∘α where samples are points, else of K."""
        n = ambiguity.n_points
        count = min(self.n_eigenvectors, n - 2)
        scale = alpha if ambiguity.n_samples == n else np.ones(n)
        if count < 1 or not scale.any():
            return []
        form = LinearOperator((n, n), matvec=lambda x: scale * (K @ (scale * x.ravel())), dtype=np.float64)
        start = scale + 1e-3 * np.cos(np.arange(n))  # fixed, and not orthogonal to anything likely
        if not form.matvec(start).any():  # a kernel of zeros has no leading direction
            return []
        return list(eigsh(form, k=count, v0=start, tol=1e-2)[1].T)

    def _random(self, ambiguity: Ambiguity) -> list[Vector]:
        count = 2 * self.n_random if ambiguity.n_ambiguous <= self.small else self.n_random
        return list(np.random.default_rng(self.seed).normal(size=(count, ambiguity.n_points)))

    def _local_search(
        self, K: Matrix, alpha: Vector, ambiguity: Ambiguity, best: ScoredCandidate
    ) -> ScoredCandidate:
        """Try single flips and swaps as long as one of them raises the value."""
        for _ in range(self.max_steps):
            near = list(ambiguity.neighbours(best.candidate))
            if not near:
                break
            values = evaluate(K, alpha, ambiguity, near)[1]
            top = int(values.argmax())
            if values[top] <= best.value * (1.0 + ROUNDING):
                break
            best = ascend(K, alpha, ambiguity, [near[top]], self.max_steps)[0]
        return best

    def _best_or_mirror(
        self, K: Matrix, alpha: Vector, ambiguity: Ambiguity, best: ScoredCandidate
    ) -> ScoredCandidate:
        """Return the opposite candidate where it is nearly as good and the known labels agree better with it.

        In the first rounds the labelled samples may have coefficients of almost zero: then a labeling and its
        mirror are tied in value, and only the known labels can decide between them.
        """
        opposite = ambiguity.mirror(best.candidate)
        agreement = ambiguity.label_agreement(best.candidate, alpha, K)
        if opposite is None or agreement is None:
            return best
        mirrored = ascend(K, alpha, ambiguity, [opposite], self.max_steps)[0]
        mirrored_agreement = ambiguity.label_agreement(mirrored.candidate, alpha, K)
        assert mirrored_agreement is not None
        share = self.mirror_share if agreement >= 0.0 else self.contradicted_share
        take = mirrored.value >= share * best.value and mirrored_agreement > agreement
        return mirrored if take else best


def ascend(
    K: Matrix, alpha: Vector, ambiguity: Ambiguity, starts: Sequence[Candidate], max_steps: int = 100
) -> list[ScoredCandidate]:
    """Maximise the linearised value, again and again, from every start until the value no longer rises."""
    candidates = list(starts)
    images, values = evaluate(K, alpha, ambiguity, candidates)
    rising = np.arange(len(candidates))
    for _ in range(max_steps):
        # K A(h)'α is half the gradient of the value with respect to A(h)'α.
        trial = [ambiguity.linear_maximizer(alpha, np.ascontiguousarray(images[:, j])) for j in rising]
        trial_images, reached = evaluate(K, alpha, ambiguity, trial)
        better = np.flatnonzero(reached > values[rising] * (1.0 + ROUNDING))
        rising = rising[better]
        for place, j in zip(rising, better, strict=True):
            candidates[place] = trial[j]
        images[:, rising], values[rising] = trial_images[:, better], reached[better]
        if rising.size == 0:
            break
    return [ScoredCandidate(h, float(value)) for h, value in zip(candidates, values, strict=True)]


def evaluate(
    K: Matrix, alpha: Vector, ambiguity: Ambiguity, candidates: Sequence[Candidate]
) -> tuple[Matrix, Vector]:
    """Return K A(h)'α of every candidate, one column each, and the values α'A(h)KA(h)'α."""
    coef = np.column_stack([ambiguity.to_points(h, alpha) for h in candidates])
    images = K @ coef
    return images, np.einsum("ij,ij->j", coef, images)
