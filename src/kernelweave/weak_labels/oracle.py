"""The most violated candidate: a convex maximisation, by monotone ascents from many starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from kernelweave._typing import Matrix, Vector
from kernelweave.weak_labels.protocol import Ambiguity, Candidate

# A rise below this share of the value is rounding.
RISE = 1e-12
MOST_STEPS = 100
# The mirror of a candidate is taken where what is known agrees better with it and it is worth nearly as much;
# half as much will do where what is known contradicts the candidate.
NEARLY, CONTRADICTED = 0.95, 0.5
# Leading eigenvectors and random directions to start from, besides what the caller suggests.
EIGENVECTORS, RANDOM = 2, 2
# Up to this many open entries all small changes are tried at the end of an ascent; there are about n²/4.
SMALL = 40


@dataclass(frozen=True)
class Found:
    """A candidate and its value α'A(h)KA(h)'α."""

    candidate: Candidate
    value: float


class Oracle(Protocol):
    """Find a candidate of large value for one kernel."""

    def find(self, K: Matrix, alpha: Vector, ambiguity: Ambiguity, starts: Sequence[Vector]) -> Found:
        """Return a candidate; ``starts`` are scores of the points worth following."""


@dataclass(frozen=True)
class Exhaustive:
    """Look at every candidate: exact, for a few ambiguous entries."""

    def find(self, K: Matrix, alpha: Vector, ambiguity: Ambiguity, starts: Sequence[Vector]) -> Found:  # noqa: ARG002
        return max(
            (_measured(K, alpha, ambiguity, h) for h in ambiguity.everything()), key=lambda found: found.value
        )


@dataclass(frozen=True)
class MultiStart:
    r"""Ascents from suggested scores, leading eigenvectors and random directions, each with its mirror.

    Notes
    -----
    [Xu14, Eq. (4.11)] by the sorting heuristic. The value is convex in A(h)'α, so following its slope never
    lowers it; where that ends depends on the start. No start proves a global optimum.
    Differs from the paper: many starts, mirrors, and single changes at the end for small problems.
    """

    seed: int = 0

    def find(self, K: Matrix, alpha: Vector, ambiguity: Ambiguity, starts: Sequence[Vector]) -> Found:
        rng = np.random.default_rng(self.seed)
        directions = [*starts, *_eigenvectors(K, alpha, ambiguity)]
        n_random = 2 * RANDOM if ambiguity.n_ambiguous <= SMALL else RANDOM  # where they cost nothing
        directions += list(rng.normal(size=(n_random, ambiguity.n_points)))
        both = [sign * scores for scores in directions for sign in (1.0, -1.0)]
        first = {ambiguity.key(h): h for h in (ambiguity.nearest(scores) for scores in both)}
        found = max(ascend(K, alpha, ambiguity, list(first.values())), key=lambda found: found.value)
        found = _with_small_changes(K, alpha, ambiguity, found)
        return _or_its_mirror(K, alpha, ambiguity, found)


def ascend(K: Matrix, alpha: Vector, ambiguity: Ambiguity, starts: Sequence[Candidate]) -> list[Found]:
    """Follow the slope of the value from every start until it no longer rises."""
    candidates = list(starts)
    C = np.column_stack([ambiguity.spread(h, alpha) for h in candidates])
    S = K @ C
    values = np.einsum("ij,ij->j", C, S)
    rising = np.arange(len(candidates))
    for _ in range(MOST_STEPS):
        trial = [ambiguity.best(alpha, np.ascontiguousarray(S[:, j])) for j in rising]
        C_new = np.column_stack([ambiguity.spread(h, alpha) for h in trial])
        S_new = K @ C_new
        reached = np.einsum("ij,ij->j", C_new, S_new)
        better = np.flatnonzero(reached > values[rising] * (1.0 + RISE))
        for j in better:
            candidates[rising[j]] = trial[j]
        S[:, rising[better]], values[rising[better]] = S_new[:, better], reached[better]
        rising = rising[better]
        if rising.size == 0:
            break
    return [Found(h, float(value)) for h, value in zip(candidates, values, strict=True)]


def _measured(K: Matrix, alpha: Vector, ambiguity: Ambiguity, candidate: Candidate) -> Found:
    c = ambiguity.spread(candidate, alpha)
    return Found(candidate, float(c @ (K @ c)))


def _with_small_changes(K: Matrix, alpha: Vector, ambiguity: Ambiguity, found: Found) -> Found:
    """Try single flips and swaps as long as one of them helps; only where there are few."""
    if not 0 < ambiguity.n_ambiguous <= SMALL:
        return found
    for _ in range(MOST_STEPS):
        near = list(ambiguity.neighbours(found.candidate))
        if not near:
            return found
        C = np.column_stack([ambiguity.spread(h, alpha) for h in near])
        values = np.einsum("ij,ij->j", C, K @ C)
        best = int(values.argmax())
        if values[best] <= found.value * (1.0 + RISE):
            return found
        found = ascend(K, alpha, ambiguity, [near[best]])[0]
    return found


def _or_its_mirror(K: Matrix, alpha: Vector, ambiguity: Ambiguity, found: Found) -> Found:
    """Return the opposite resolution where it is nearly as good and the known labels agree better with it.

    In the first rounds the known samples may carry almost no weight: then a labeling and its mirror are tied,
    and only what is known can tell which way round is right.
    """
    opposite = ambiguity.mirror(found.candidate)
    agreement = ambiguity.agreement(found.candidate, alpha, K)
    if opposite is None or agreement is None:
        return found
    mirrored = ascend(K, alpha, ambiguity, [opposite])[0]
    other = ambiguity.agreement(mirrored.candidate, alpha, K)
    assert other is not None
    least = (NEARLY if agreement >= 0.0 else CONTRADICTED) * found.value
    return mirrored if mirrored.value >= least and other > agreement else found


def _eigenvectors(K: Matrix, alpha: Vector, ambiguity: Ambiguity) -> list[Vector]:
    """Return leading eigenvectors of the kernel as the slope sees it, α∘K∘α where samples are points."""
    n = ambiguity.n_points
    count = min(EIGENVECTORS, n - 2)
    if count < 1:
        return []
    scale = alpha if ambiguity.n_samples == n else np.ones(n)
    if not scale.any():
        return []
    operator = LinearOperator((n, n), matvec=lambda x: scale * (K @ (scale * x.ravel())), dtype=np.float64)
    start = scale + 1e-3 * np.cos(np.arange(n))  # fixed, and not orthogonal to anything likely
    if not operator.matvec(start).any():  # a kernel of zeros tells nothing
        return []
    _, vectors = eigsh(operator, k=count, v0=start, tol=1e-2)
    return list(vectors.T)
