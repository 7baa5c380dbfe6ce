"""What the cutting plane asks of a set of candidates, whether they are labelings or selections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelweave._typing import Matrix, Vector

# One way to resolve what is ambiguous: a label ±1 per sample, or 1 for every point a sample is made of.
Candidate: TypeAlias = NDArray[np.int8]


class Ambiguity(Protocol):
    r"""A set of candidates h, each of which makes samples of points: φ̃_i = Σ_j A(h)_ij φ(x_j).

    The input-output kernel of h is A(h) K A(h)', K being the kernel of the points. For labelings the points
    are the samples and A(h) is diag(h); for selections row i spreads over the chosen instances of bag i.
    """

    @property
    def n_samples(self) -> int:
        """The number of samples, one machine coefficient each."""

    @property
    def n_points(self) -> int:
        """The number of points, the size of the kernel matrices."""

    @property
    def n_ambiguous(self) -> int:
        """How many entries of a candidate are open."""

    def spread(self, candidate: Candidate, alpha: Vector) -> Vector:
        """Return A(h)'α, what coefficients of samples are on points."""

    def gather(self, candidate: Candidate, values: Vector) -> Vector:
        """Return A(h) s, what values of points are on samples."""

    def add(self, K: Matrix, candidates: Sequence[Candidate], weights: Vector, out: Matrix) -> None:
        """Add Σ_t weights_t A(h_t) K A(h_t)' to ``out`` without forming any of its terms for large n."""

    def best(self, alpha: Vector, values: Vector) -> Candidate:
        """Return the candidate with the largest values'A(h)'α."""

    def nearest(self, scores: Vector) -> Candidate:
        """Return the candidate that follows scores of the points most closely."""

    def agreement(self, candidate: Candidate, alpha: Vector, K: Matrix) -> float | None:
        """Return how well the ambiguous part alone predicts what is known; None if nothing is."""

    def mirror(self, candidate: Candidate) -> Candidate | None:
        """Return the candidate nearest to the opposite one, where there is such a thing."""

    def oriented(self, candidate: Candidate, scores: Vector) -> Candidate:
        """Return the one of the candidates with the same kernel that follows the scores."""

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield the candidates that differ by one small legal change."""

    def everything(self) -> Iterator[Candidate]:
        """Yield every candidate once."""

    def contains(self, candidate: Candidate) -> bool:
        """Return whether the candidate is legal."""

    def key(self, candidate: Candidate) -> bytes:
        """Return the same bytes for candidates that make the same kernel."""
