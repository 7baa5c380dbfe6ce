"""What a fitted model keeps to score new samples, and streams: stage 1 of OBSCURE batch by batch.

Two kinds of each: on kernels, where the samples that changed the model are kept, and on explicit features,
whose memory does not grow. A stream is a value: `update_stream` returns another one, so that a batch with an
error in it leaves the model as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.cross import in_slices, scores, weighted_contributions
from kernelweave.bank.features import FittedFeatures
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram.memory import budget, human
from kernelweave.multiclass.problem import dual_norm_and_weights
from kernelweave.multiclass.rows import FeatureRows, check_diagonals
from kernelweave.multiclass.stochastic import ThetaIterate, online_step


@dataclass(frozen=True)
class KernelScorer:
    """f_c(x) = Σ_j eta_j Σ_i coef_ci k_j(x_i, x) over support vectors among the training samples."""

    bank: FittedKernels = field(repr=False)
    eta: Vector
    coef: Matrix = field(repr=False)
    support: AnyArray = field(repr=False)
    n_threads: int = 1

    def scores(self, X: Any) -> Matrix:
        """Return f_c(x), of shape (rows, classes)."""
        return scores(self.bank, X, self.eta[None], self.coef, self.support, self.n_threads)

    def contributions(self, X: Any) -> AnyArray:
        """Return what every kernel adds to the scores: (rows, classes, M)."""
        eta = np.broadcast_to(self.eta, (len(self.coef), self.eta.size))
        return weighted_contributions(self.bank, X, eta, self.coef, self.support, self.n_threads)


@dataclass(frozen=True)
class FeatureScorer:
    """f_c(x) = Σ_j eta_j φ_j(x)'θ_jc with explicit features."""

    features: FittedFeatures = field(repr=False)
    eta: Vector
    theta: Matrix = field(repr=False)

    def scores(self, X: Any) -> Matrix:
        """Return f_c(x), of shape (rows, classes)."""
        coef = np.repeat(self.eta, np.diff(self.features.offsets))[:, None] * self.theta
        return in_slices(X, lambda rows: self.features.transform(rows) @ coef, len(coef))

    def contributions(self, X: Any) -> AnyArray:
        """Return what every kernel adds to the scores: (rows, classes, M)."""
        Phi, bounds = self.features.transform(X), pairwise(self.features.offsets)
        each = [eta * Phi[:, a:b] @ self.theta[a:b] for eta, (a, b) in zip(self.eta, bounds, strict=True)]
        return np.stack(each, axis=2)


@dataclass(frozen=True)
class OnlineRule:
    """The constants of stage 1: the exponent q of the dual norm, and the step eta of `online_step`."""

    q: float
    eta: float = 2.0

    def weights_and_norms(self, s: Vector) -> tuple[Vector, Vector]:
        """Return the kernel weights σ_j and the norms ‖w^j‖, w^j = σ_j θ^j / q, given s_j = ‖θ^j‖²."""
        weights = dual_norm_and_weights(s, self.q)[1]
        return weights, weights * np.sqrt(s) / self.q

    def theta_squares(self, weights: Vector, norms: Vector) -> Vector:
        """Return the s_j of a model with these weights and norms: the inverse of `weights_and_norms`."""
        return np.asarray((self.q * norms / np.where(weights > 0.0, weights, 1.0)) ** 2)


@dataclass(frozen=True)
class KernelStream:
    """An online model on kernels: the samples that changed it so far, in chunks, with their coefficients.

    ``s`` are the ‖θ^j‖². ``first`` is the model of an ordinary fit, if the stream continues one.
    """

    bank: FittedKernels = field(repr=False)
    rule: OnlineRule
    s: Vector
    n_classes: int
    first: KernelScorer | None = None
    chunks: tuple[tuple[Any, Matrix], ...] = field(default=(), repr=False)

    @property
    def n_support(self) -> int:
        return sum(self._chunk_sizes())

    def max_batch(self, limit: int) -> int:
        """Return how many samples b may come at once: kernels among them, and to one chunk of those kept."""
        M = len(self.bank)
        square = 16 * M  # bytes: square b² + linear b
        linear = 8 * (2 * M * self.n_classes + 3 * max(self._chunk_sizes(), default=0))
        if square + linear > limit:
            raise MemoryError(
                f"{M} kernels with {self.n_support} samples kept need {human(square + linear)} for a single "
                f"sample, but {human(limit)} may be used: raise memory_limit, or stream explicit features."
            )
        return int((np.sqrt(linear * linear + 4.0 * square * limit) - linear) / (2.0 * square))

    def updated(self, X: Any, y: AnyArray, weight: Vector, start: int) -> KernelStream:
        """Return the stream after samples that fit into memory, the first of which is number ``start``."""
        n = len(y)
        K = np.empty((len(self.bank), n, n))
        for m, values in self.bank.between(X, X):
            K[m] = values
        diagonals = np.diagonal(K, axis1=1, axis2=2)
        check_diagonals(diagonals, start)
        iterate = ThetaIterate((n, self.n_classes), self.s, self.rule.q)
        iterate.load(np.arange(n), y, weight, self._theta_scores(X, n), K, diagonals)
        for k in range(n):
            online_step(iterate, k, self.rule.eta)
        used = np.flatnonzero(iterate.V.any(axis=1))
        if not used.size:
            return replace(self, s=iterate.s)
        chunks = _with_chunk(self.chunks, _safe_indexing(X, used), iterate.V[used])
        return replace(self, s=iterate.s, chunks=chunks)

    def scores(self, X: Any) -> Matrix:
        """Return f_c(x), of shape (rows, classes)."""
        return np.asarray(self.contributions(X).sum(axis=2))

    def contributions(self, X: Any) -> AnyArray:
        """Return what every kernel adds to the scores: (rows, classes, M)."""
        eta = self.rule.weights_and_norms(self.s)[0] / self.rule.q
        return np.moveaxis(eta[:, None, None] * self._theta_scores(X, X.shape[0]), 0, 2)

    def _theta_scores(self, X: Any, n: int) -> AnyArray:
        """Return θ^j · φ^j(x, c) per kernel, sample and class."""
        out = np.zeros((len(self.bank), n, self.n_classes))
        if self.first is not None:  # a fit has w^j = σ_j Σ_i coef_i ⊗ φ^j(x_i): q times its coefficients
            for m, K in self.bank.cross(X, columns=self.first.support):
                out[m] += K @ (self.rule.q * self.first.coef.T)
        for Z, B in self.chunks:
            for m, K in self.bank.between(X, Z):
                out[m] += K @ B
        return out

    def _chunk_sizes(self) -> list[int]:
        first = [] if self.first is None else [int(self.first.support.size)]
        return first + [len(B) for _, B in self.chunks]


def _with_chunk(chunks: tuple[tuple[Any, Matrix], ...], Z: Any, B: Matrix) -> tuple[tuple[Any, Matrix], ...]:
    """Return the chunks with another one, arrays joined where the last is not much larger.

    Sizes then fall by half from chunk to chunk: a thousand small batches leave ten chunks to score with.
    """
    while chunks and isinstance(Z, np.ndarray) and len(chunks[-1][1]) <= 2 * len(B):
        last, coef = chunks[-1]
        Z, B, chunks = np.vstack([last, Z]), np.vstack([coef, B]), chunks[:-1]
    return (*chunks, (Z, B))


@dataclass(frozen=True)
class FeatureStream:
    """An online model on explicit features; ``s`` are the ‖θ^j‖², ``n_support`` counts the updates."""

    features: FittedFeatures = field(repr=False)
    rule: OnlineRule
    s: Vector
    theta: Matrix = field(repr=False)
    n_support: int = 0

    def max_batch(self, limit: int) -> int:
        """Return how many samples may come at once: their features, and what is computed from them."""
        n_features = int(self.features.offsets[-1])
        each, held = 24 * n_features, 3 * self.theta.nbytes
        if held + each > limit:
            raise MemoryError(
                f"{n_features} features need {human(held + each)} for a single sample, "
                f"but {human(limit)} may be used: raise memory_limit, or use fewer features."
            )
        return (limit - held) // max(each, 1)

    def updated(self, X: Any, y: AnyArray, weight: Vector, start: int) -> FeatureStream:
        """Return the stream after samples that fit into memory, the first of which is number ``start``."""
        Phi, offsets = np.ascontiguousarray(self.features.transform(X)), self.features.offsets
        FeatureRows(Phi, offsets).check(start)
        theta, s = self.theta.copy(), self.s.copy()
        n_updates = _core.online_steps(
            Phi, y.astype(np.int64), weight, offsets.astype(np.int64), self.rule.q, self.rule.eta, theta, s
        )
        return replace(self, theta=theta, s=s, n_support=self.n_support + n_updates)

    def scores(self, X: Any) -> Matrix:
        """Return f_c(x), of shape (rows, classes)."""
        return self._scorer().scores(X)

    def contributions(self, X: Any) -> AnyArray:
        """Return what every kernel adds to the scores: (rows, classes, M)."""
        return self._scorer().contributions(X)

    def _scorer(self) -> FeatureScorer:
        eta = self.rule.weights_and_norms(self.s)[0] / self.rule.q
        return FeatureScorer(self.features, eta, self.theta)


def update_stream(
    stream: KernelStream | FeatureStream,
    X: Any,
    y: AnyArray,
    weight: Vector,
    memory_limit: float | None = None,
) -> KernelStream | FeatureStream:
    """Return the stream after a batch; where the batch does not fit into memory, it comes in pieces.

    Samples are visited one by one in any case, so the pieces do not change the result.
    """
    limit, start, n = budget(memory_limit), 0, len(y)
    while start < n:
        size = min(stream.max_batch(limit), n - start)
        rows = slice(start, start + size)
        piece = X if size == n else _safe_indexing(X, rows)
        stream = stream.updated(piece, y[rows], weight[rows], start)
        start += size
    return stream
