"""Streams: the online stage of OBSCURE batch by batch, on kernels or on explicit features."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.cross import contributions, scores
from kernelweave.bank.features import FittedFeatures
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram.memory import budget, human
from kernelweave.multiclass.online import OnlineRule, Standing
from kernelweave.multiclass.segments import segment_sums

AnyStream = TypeVar("AnyStream", "KernelStream", "FeatureStream")
# Samples without features take no memory, whatever their number.
MANY = 1 << 30


@dataclass(frozen=True)
class KernelScorer:
    """f_c(x) = Σ_j eta_j Σ_i coef_ci k_j(x_i, x) over support vectors among the training samples."""

    bank: FittedKernels = field(repr=False)
    eta: Vector
    coef: Matrix = field(repr=False)
    support: AnyArray = field(repr=False)

    def scores(self, X: Any) -> Matrix:
        return scores(self.bank, X, self.eta[None], self.coef, self.support)

    def parts(self, X: Any) -> AnyArray:
        """Return what every kernel adds to the scores: (rows, classes, M)."""
        return contributions(self.bank, X, self.eta[:, None] * self.coef[:, None], self.support)


@dataclass(frozen=True)
class FeatureScorer:
    """f_c(x) = Σ_j eta_j φ_j(x)'θ_jc with explicit features."""

    features: FittedFeatures = field(repr=False)
    eta: Vector
    theta: Matrix = field(repr=False)

    def scores(self, X: Any) -> Matrix:
        weights = np.repeat(self.eta, np.diff(self.features.offsets))
        return self.features.transform(X) @ (weights[:, None] * self.theta)

    def parts(self, X: Any) -> AnyArray:
        Phi, bounds = self.features.transform(X), self.features.offsets
        each = [
            weight * Phi[:, a:b] @ self.theta[a:b]
            for weight, a, b in zip(self.eta, bounds[:-1], bounds[1:], strict=True)
        ]
        return np.stack(each, axis=2)


@dataclass(frozen=True)
class KernelStream:
    """An online model on kernels: the samples that changed it so far, in chunks, with their coefficients.

    ``first`` is what an ordinary fit left, if the stream goes on from one.
    """

    bank: FittedKernels = field(repr=False)
    rule: OnlineRule
    s: Vector
    n_classes: int
    first: KernelScorer | None = None
    chunks: tuple[tuple[Any, Matrix], ...] = field(default=(), repr=False)

    @property
    def n_support(self) -> int:
        first = 0 if self.first is None else self.first.support.size
        return int(first + sum(len(B) for _, B in self.chunks))

    def advanced(
        self, X: Any, y: AnyArray, weight: Vector, memory_limit: float | None = None
    ) -> KernelStream:
        """Return the stream after these samples, as many at a time as fit; it stays as it is itself."""
        return _in_pieces(self, X, y, weight, budget(memory_limit))

    def room(self, limit: int) -> int:
        """Return how many samples b may pass at once: kernels among them, and with those kept so far."""
        M = len(self.bank)
        kept = max([len(B) for _, B in self.chunks], default=0)
        kept = kept if self.first is None else max(kept, int(self.first.support.size))
        square, each = 16 * M, 8 * (2 * M * self.n_classes + 3 * kept)  # bytes: square b² + each b
        if square + each > limit:
            raise MemoryError(
                f"{M} kernels with {self.n_support} samples kept need {human(square + each)} for a single "
                f"sample, but {human(limit)} may be used: raise memory_limit, or stream explicit features."
            )
        return int((np.sqrt(each * each + 4.0 * square * limit) - each) / (2.0 * square))

    def passed(self, X: Any, y: AnyArray, weight: Vector, start: int) -> KernelStream:
        """Return the stream after these samples, the first of which is number ``start`` of its batch."""
        K = np.empty((len(self.bank), len(y), len(y)))
        for m, values in self.bank.between(X, X):
            K[m] = values
        require_lengths(np.diagonal(K, axis1=1, axis2=2), start)
        B, s = self.rule.through_kernels(self._each(X, len(y)), K, y, weight, self.s)
        used = np.flatnonzero(B.any(axis=1))
        chunks = self.chunks if not used.size else _added(self.chunks, _safe_indexing(X, used), B[used])
        return replace(self, s=s, chunks=chunks)

    def scores(self, X: Any) -> Matrix:
        eta = Standing(self.rule.q, self.s).eta / self.rule.q
        n = X.shape[0]
        return np.asarray(np.einsum("j,jbc->bc", eta, self._each(X, n)))

    def parts(self, X: Any) -> AnyArray:
        eta = Standing(self.rule.q, self.s).eta / self.rule.q
        return np.moveaxis(eta[:, None, None] * self._each(X, X.shape[0]), 0, 2)

    def _each(self, X: Any, n: int) -> AnyArray:
        """Return θ^j · φ^j(x, c) per kernel, sample and class."""
        out = np.zeros((len(self.bank), n, self.n_classes))
        if self.first is not None:
            for m, K in self.bank.cross(X, columns=self.first.support):
                out[m] += K @ (self.rule.q * self.first.coef.T)
        for Z, B in self.chunks:
            for m, K in self.bank.between(X, Z):
                out[m] += K @ B
        return out


@dataclass(frozen=True)
class FeatureStream:
    """An online model on explicit features: its memory does not grow."""

    features: FittedFeatures = field(repr=False)
    rule: OnlineRule
    s: Vector
    theta: Matrix = field(repr=False)
    n_support: int = 0

    def advanced(
        self, X: Any, y: AnyArray, weight: Vector, memory_limit: float | None = None
    ) -> FeatureStream:
        """Return the stream after these samples, as many at a time as fit; it stays as it is itself."""
        return _in_pieces(self, X, y, weight, budget(memory_limit))

    def room(self, limit: int) -> int:
        """Return how many samples may pass at once: their features, and what is made of them."""
        each, held = 24 * int(self.features.offsets[-1]), 3 * self.theta.nbytes
        if held + each > limit:
            raise MemoryError(
                f"{int(self.features.offsets[-1])} features need {human(held + each)} for a single sample, "
                f"but {human(limit)} may be used: raise memory_limit, or use fewer features."
            )
        return (limit - held) // each if each else MANY

    def passed(self, X: Any, y: AnyArray, weight: Vector, start: int) -> FeatureStream:
        """Return the stream after these samples, the first of which is number ``start`` of its batch."""
        Phi = self.features.transform(X)
        if not np.isfinite(Phi).all():
            raise ValueError("The features of a sample are not finite; standardise the columns.")
        require_lengths(segment_sums(Phi * Phi, self.features.offsets, axis=1).T, start)
        theta, s, updates = self.rule.through_features(
            Phi, y, weight, self.features.offsets, self.theta, self.s
        )
        return replace(self, theta=theta, s=s, n_support=self.n_support + updates)

    def scores(self, X: Any) -> Matrix:
        eta = Standing(self.rule.q, self.s).eta / self.rule.q
        return FeatureScorer(self.features, eta, self.theta).scores(X)

    def parts(self, X: Any) -> AnyArray:
        eta = Standing(self.rule.q, self.s).eta / self.rule.q
        return FeatureScorer(self.features, eta, self.theta).parts(X)


def _in_pieces(stream: AnyStream, X: Any, y: AnyArray, weight: Vector, limit: int) -> AnyStream:
    """Return the stream after a batch, cut where it is too large: samples pass one by one in any case."""
    start, n = 0, len(y)
    while start < n:
        size = min(stream.room(limit), n - start)
        rows = slice(start, start + size)
        part = X if size == n else _safe_indexing(X, rows)
        stream = stream.passed(part, y[rows], weight[rows], start)
        start += size
    return stream


def require_lengths(diagonals: Matrix, start: int = 0) -> None:
    """Raise ValueError where a sample has no length under any kernel: nothing could be learnt from it."""
    empty = np.flatnonzero(~(diagonals > 0.0).any(axis=0))
    if empty.size:
        raise ValueError(
            f"Sample {start + empty[0]} has k(x, x) = 0 under every kernel ({empty.size} such in all), so "
            "nothing can tell its class; drop it, or add a kernel with an offset."
        )


def _added(chunks: tuple[tuple[Any, Matrix], ...], Z: Any, B: Matrix) -> tuple[tuple[Any, Matrix], ...]:
    """Return the chunks with another, put together where they are arrays and the last is not much larger."""
    while chunks and isinstance(Z, np.ndarray) and len(chunks[-1][1]) <= 2 * len(B):
        last, coef = chunks[-1]
        Z, B, chunks = np.vstack([last, Z]), np.vstack([coef, B]), chunks[:-1]
    return (*chunks, (Z, B))
