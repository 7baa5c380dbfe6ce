"""The most violated candidate of a kernel: a convex maximisation, by ascents from many starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        coef = self._coefficients(candidates)
        images = self.K @ coef
        return images, np.einsum("ij,ij->j", coef, images)

    def ascend(self, starts: Sequence[Candidate], max_steps: int = 100) -> list[ScoredCandidate]:
        """Maximise the linearised value, again and again, from every start until the value no longer rises.

        The value is convex in A(h)'α and so lies above its linearisation: no step can lower it. Ascents that
        meet go on as one; a step reads the rows of K whose points change, few after the first steps.
        """
        rising = self._distinct(starts)
        coef = self._coefficients(rising)
        images = self.K @ coef
        values = np.einsum("ij,ij->j", coef, images)
        ended: list[ScoredCandidate] = []
        for _ in range(max_steps):
            # K A(h)'α is half the gradient of the value with respect to A(h)'α.
            trial = [self.ambiguity.linear_maximizer(self.alpha, g) for g in np.ascontiguousarray(images.T)]
            trial_coef = self._coefficients(trial)
            change = trial_coef - coef
            rows = np.flatnonzero(change.any(axis=1))
            trial_images = images + self.K[rows].T @ change[rows]
            trial_values = np.einsum("ij,ij->j", trial_coef, trial_images)
            rises = trial_values > values * (1.0 + ROUNDING)
            ended += [ScoredCandidate(rising[j], float(values[j])) for j in np.flatnonzero(~rises)]
            kept = {self.ambiguity.key(trial[j]): int(j) for j in np.flatnonzero(rises)}
            places = list(kept.values())
            rising = [trial[j] for j in places]
            coef, images, values = trial_coef[:, places], trial_images[:, places], trial_values[places]
            if not rising:
                break
        ended += [ScoredCandidate(h, float(value)) for h, value in zip(rising, values, strict=True)]
        return list({self.ambiguity.key(end.candidate): end for end in ended}.values())

    def _coefficients(self, candidates: Sequence[Candidate]) -> Matrix:
        """Return A(h)'α of every candidate, one column each."""
        return np.column_stack([self.ambiguity.to_points(h, self.alpha) for h in candidates])

    def _distinct(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return list({self.ambiguity.key(h): h for h in candidates}.values())


class Oracle(Protocol):
    """Find candidates of large value for one kernel."""

    def find(self, objective: CandidateObjective, starts: Sequence[Vector]) -> list[ScoredCandidate]:
        """Return different candidates, the one to take first and the others by falling value.

        ``starts`` are scores of the points to begin searches from.
        """


@dataclass(frozen=True)
class Exhaustive:
    """Evaluate every candidate: exact, for a few ambiguous entries."""

    def find(self, objective: CandidateObjective, starts: Sequence[Vector]) -> list[ScoredCandidate]:  # noqa: ARG002
        every = objective.ambiguity.all_candidates()
        return by_value(ScoredCandidate(h, float(objective.evaluate([h])[1][0])) for h in every)


@dataclass(frozen=True)
class MultiStart:
    r"""Ascents from given scores, leading eigenvectors and random directions, each in both directions.

    Parameters
    ----------
    seed : seed of the random directions.
    n_eigenvectors, n_random : how many leading eigenvectors and random directions to start from.
    small : with up to this many ambiguous entries a search is cheap: it starts from twice as many random
        directions, and every ascent ends with single flips and swaps, of which there are about n²/4.
    max_steps : most steps of an ascent, and most flips and swaps after it.
    mirror_below : while the samples with a label carry less than this share of Σα, the mirror of the best
        labeling may come first.
    mirror_share : it does where it agrees better with the known labels and its value is at least this share
        of the best.

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
    mirror_below: float = 0.05
    mirror_share: float = 0.95

    def find(self, objective: CandidateObjective, starts: Sequence[Vector]) -> list[ScoredCandidate]:
        ambiguity = objective.ambiguity
        directions = [*starts, *self._eigenvectors(objective), *self._random(ambiguity)]
        both = [sign * scores for scores in directions for sign in (1.0, -1.0)]
        ends = objective.ascend([ambiguity.from_scores(scores) for scores in both], self.max_steps)
        if 0 < ambiguity.n_ambiguous <= self.small:
            ends = [self._local_search(objective, end) for end in ends]
        ranked = by_value({ambiguity.key(end.candidate): end for end in ends}.values())
        mirrored = self._mirrored(objective, ranked[0])
        return ranked if mirrored is None else [mirrored, *ranked]

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

    def _mirrored(self, objective: CandidateObjective, best: ScoredCandidate) -> ScoredCandidate | None:
        """Return the opposite labeling where it is nearly as good and the known labels agree better with it.

        In the first rounds the labelled samples may have coefficients of almost zero: then a labeling and its
        mirror are tied in value, and only the known labels can decide between them.
        """
        K, alpha, ambiguity = objective.K, objective.alpha, objective.ambiguity
        opposite = ambiguity.mirror(best.candidate)
        if opposite is None or ambiguity.known_share(alpha) >= self.mirror_below:
            return None
        mirrored = objective.ascend([opposite], self.max_steps)[0]
        agreement, mirrored_agreement = (
            ambiguity.label_agreement(each.candidate, alpha, K) for each in (best, mirrored)
        )
        nearly_as_good = mirrored.value >= self.mirror_share * best.value
        return mirrored if nearly_as_good and mirrored_agreement > agreement else None


def by_value(candidates: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return the candidates by falling value."""
    return sorted(candidates, key=lambda each: -each.value)
