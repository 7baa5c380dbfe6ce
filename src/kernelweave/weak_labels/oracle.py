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
    """A candidate and its value."""

    candidate: Candidate
    value: float


@dataclass(frozen=True)
class CandidateObjective:
    """The value α'A(h)KA(h)'α of candidates h for one kernel, twice the energy that h would add."""

    K: Matrix
    alpha: Vector
    ambiguity: Ambiguity

    def evaluate(self, candidates: Sequence[Candidate]) -> tuple[Matrix, Vector]:
        """Return K A(h)'α of every candidate, one column each, and the values α'A(h)KA(h)'α."""
        coef = np.column_stack([self.ambiguity.to_points(h, self.alpha) for h in candidates])
        images = self.K @ coef
        return images, np.einsum("ij,ij->j", coef, images)

    def ascend(self, starts: Sequence[Candidate], max_steps: int = 100) -> list[ScoredCandidate]:
        """Maximise the linearised value, again and again, from every start until the value no longer rises.

        The value is convex in A(h)'α and so lies above its linearisation: no step can lower it.
        """
        candidates = list(starts)
        images, values = self.evaluate(candidates)
        rising = np.arange(len(candidates))
        for _ in range(max_steps):
            # K A(h)'α is half the gradient of the value with respect to A(h)'α.
            gradients = np.ascontiguousarray(images[:, rising].T)
            trial = [self.ambiguity.linear_maximizer(self.alpha, gradient) for gradient in gradients]
            trial_images, trial_values = self.evaluate(trial)
            better = np.flatnonzero(trial_values > values[rising] * (1.0 + ROUNDING))
            rising = rising[better]
            if rising.size == 0:
                break
            for place, j in zip(rising, better, strict=True):
                candidates[place] = trial[j]
            images[:, rising], values[rising] = trial_images[:, better], trial_values[better]
        return [ScoredCandidate(h, float(value)) for h, value in zip(candidates, values, strict=True)]


class Oracle(Protocol):
    """Find a candidate of large value for one kernel."""

    def find(self, objective: CandidateObjective, starts: Sequence[Vector]) -> ScoredCandidate:
        """Return a candidate; ``starts`` are scores of the points to begin searches from."""


@dataclass(frozen=True)
class Exhaustive:
    """Evaluate every candidate: exact, for a few ambiguous entries."""

    def find(self, objective: CandidateObjective, starts: Sequence[Vector]) -> ScoredCandidate:  # noqa: ARG002
        every = objective.ambiguity.all_candidates()
        scored = (ScoredCandidate(h, float(objective.evaluate([h])[1][0])) for h in every)
        return max(scored, key=lambda each: each.value)


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
    [Xu14, Eq. (4.11)] by the sorting heuristic. An ascent never lowers the value; where it ends depends on
    the start, and no start proves a global optimum.
    Differs from the paper: many starts, mirrors, and single changes at the end for small problems.
    """

    seed: int = 0
    n_eigenvectors: int = 2
    n_random: int = 2
    small: int = 40
    max_steps: int = 100
    mirror_share: float = 0.95
    contradicted_share: float = 0.5

    def find(self, objective: CandidateObjective, starts: Sequence[Vector]) -> ScoredCandidate:
        ambiguity = objective.ambiguity
        directions = [*starts, *self._eigenvectors(objective), *self._random(ambiguity)]
        both = [sign * scores for scores in directions for sign in (1.0, -1.0)]
        first = {ambiguity.key(h): h for h in map(ambiguity.from_scores, both)}
        ends = objective.ascend(list(first.values()), self.max_steps)
        best = max(ends, key=lambda end: end.value)
        if 0 < ambiguity.n_ambiguous <= self.small:
            best = self._local_search(objective, best)
        return self._best_or_mirror(objective, best)

    def _eigenvectors(self, objective: CandidateObjective) -> list[Vector]:
        """Return leading eigenvectors of the quadratic form: of α∘K∘α where samples are points, else of K."""
        K, n = objective.K, objective.ambiguity.n_points
        count = min(self.n_eigenvectors, n - 2)
        scale = objective.alpha if objective.ambiguity.n_samples == n else np.ones(n)
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

    def _local_search(self, objective: CandidateObjective, best: ScoredCandidate) -> ScoredCandidate:
        """Try single flips and swaps as long as one of them raises the value."""
        for _ in range(self.max_steps):
            near = list(objective.ambiguity.neighbours(best.candidate))
            if not near:
                break
            values = objective.evaluate(near)[1]
            top = int(values.argmax())
            if values[top] <= best.value * (1.0 + ROUNDING):
                break
            best = objective.ascend([near[top]], self.max_steps)[0]
        return best

    def _best_or_mirror(self, objective: CandidateObjective, best: ScoredCandidate) -> ScoredCandidate:
        """Return the opposite candidate where it is nearly as good and the known labels agree better with it.

        In the first rounds the labelled samples may have coefficients of almost zero: then a labeling and its
        mirror are tied in value, and only the known labels can decide between them.
        """
        K, alpha, ambiguity = objective.K, objective.alpha, objective.ambiguity
        opposite = ambiguity.mirror(best.candidate)
        agreement = ambiguity.label_agreement(best.candidate, alpha, K)
        if opposite is None or agreement is None:
            return best
        mirrored = objective.ascend([opposite], self.max_steps)[0]
        mirrored_agreement = ambiguity.label_agreement(mirrored.candidate, alpha, K)
        assert mirrored_agreement is not None
        share = self.mirror_share if agreement >= 0.0 else self.contradicted_share
        take = mirrored.value >= share * best.value and mirrored_agreement > agreement
        return mirrored if take else best
