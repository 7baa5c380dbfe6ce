"""Kernels by explicit features, samples in blocks: the problem, a pass over the samples, and the bounds it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.geometry.base import Geometry, fenchel_young_gap
from kernelweave.learners.program import DualProgram
from kernelweave.solvers.certificate import Certificate

# Up to so many products with a table of features are faster one after the other than all at once.
FEW_ROWS = 8


class SampleBlock(NamedTuple):
    """Some samples: as the bank reads them, with one column per target, and their weights.

    ``origin`` says where they come from, for errors to begin with.
    """

    X: Any
    Y: Matrix
    weight: Vector
    origin: str = ""


class SampleBlocks(Protocol):
    """Samples that come in blocks, as often as they are asked for; where they are is their own affair."""

    @property
    def n_samples(self) -> int: ...

    @property
    def n_targets(self) -> int: ...

    def add_up(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of work(block, *arguments) over all blocks, always in the same order."""
        ...

    def sample(self, size: int) -> SampleBlocks | None:
        """Return about so many of the samples; None where all of them are not more."""
        ...


class FeatureMaps(Protocol):
    """Features φ_m(x) = T_m'ρ_m(x) of all kernels; the identity where T_m is None."""

    @property
    def transforms(self) -> Sequence[Matrix | None]: ...

    @property
    def sizes(self) -> Sequence[int]:
        """How many features each kernel has."""
        ...

    def raw(self, X: Any, which: Sequence[int], dtype: str = "float64") -> list[AnyArray]: ...


class ElementwiseLearner(Protocol):
    """A learner whose loss is a sum over samples, each of which needs to know its own target alone."""

    @property
    def has_bias(self) -> bool: ...

    def elementwise(self, y: Vector, weight: Vector) -> DualProgram:
        """Return the dual of the samples' losses; sums are not looked at."""
        ...


@dataclass(frozen=True)
class FeaturePoint:
    """Weights of some kernels, and the function: f(x) = Σ_m ρ_m(x)'beta_m + bias, one column per target."""

    working: Indices
    eta: Vector
    w: tuple[Matrix, ...] = field(repr=False)  # of shape (features of m, targets)
    bias: Vector

    def beta(self, maps: FeatureMaps) -> list[Matrix]:
        """Return the coefficients of the raw features."""
        return [_through(maps.transforms[m], w) for m, w in zip(self.working, self.w, strict=True)]

    def towards(self, other: FeaturePoint, share: float) -> FeaturePoint:
        """Return the point that is this share of the way to another with the same kernels."""
        w = tuple((1.0 - share) * a + share * b for a, b in zip(self.w, other.w, strict=True))
        eta = (1.0 - share) * self.eta + share * other.eta
        return replace(self, eta=eta, w=w, bias=(1.0 - share) * self.bias + share * other.bias)

    def used(self) -> FeaturePoint:
        """Return the point without kernels of weight zero, or as it is if there are no others."""
        kept = np.flatnonzero(self.eta)
        if not kept.size:
            return self
        w = tuple(self.w[place] for place in kept)
        return replace(self, working=self.working[kept], eta=self.eta[kept], w=w)

    @property
    def norm(self) -> float:
        """½ Σ ||w_m||² / eta_m."""
        squares = np.array([float(np.sum(w**2)) for w in self.w])
        used = self.eta > 0.0
        return np.inf if squares[~used].any() else 0.5 * float(np.sum(squares[used] / self.eta[used]))


@dataclass
class PassSums:
    """What a pass over samples adds up.

    ``loss`` is that of the point, ``smoothed`` those of smoothed losses on the way from the last point to this one.
    Of the dual coefficients v there are sums over the positive and over the negative ones, so that either can be
    scaled until all sum to zero: ``gains`` has s'v, v'diag(d)v, the same with the d of smoothed losses, kink'|v| and
    Σv, and ``products`` R'v. Both also have those v, of either sign, that only smoothing keeps off their bounds.
    ``hessians`` are those of the smoothed losses.
    """

    loss: float
    smoothed: Vector
    gains: AnyArray  # (5, 3, targets): positive, negative, on the ramps of smoothing
    products: list[AnyArray]  # (raw features of m, 3, targets) each
    hessians: AnyArray | None  # (targets, D + 1, D + 1)

    def __add__(self, other: PassSums) -> PassSums:
        hessians = None if self.hessians is None else self.hessians + other.hessians
        products = [a + b for a, b in zip(self.products, other.products, strict=True)]
        loss, smoothed = self.loss + other.loss, self.smoothed + other.smoothed
        return PassSums(loss, smoothed, self.gains + other.gains, products, hessians)


def sums_over_block(
    block: SampleBlock,
    maps: FeatureMaps,
    learner: ElementwiseLearner,
    point: FeaturePoint,
    before: FeaturePoint | None,
    shares: Vector,
    width: float,
    which: Sequence[int],
    dtype: str,
    want_hessian: bool,
) -> PassSums:
    """Return the sums over one block at a point, with products of the kernels ``which``.

    ``shares`` are those of the way from ``before`` to the point at which losses are wanted.
    """
    used = point.working.tolist()
    raw = dict(zip(used, maps.raw(block.X, used, dtype), strict=True))
    F = _values(raw, maps, point)
    F_before = F if before is None else _values(raw, maps, before)
    n, k = F.shape
    loss, along, gains = 0.0, np.zeros(shares.size), np.zeros((5, 3, k))
    V, curved = np.zeros((3, k, n)), list[tuple[Indices, Vector]]()
    for c in range(k):
        program = learner.elementwise(block.Y[:, c], block.weight)
        smooth = program.smoothed(width)
        residual, change = program.s - F[:, c], F[:, c] - F_before[:, c]
        loss += float(program.losses(residual).sum())
        for place, share in enumerate(shares):
            along[place] += float(smooth.losses(residual + (1.0 - share) * change).sum())
        v, rate = smooth.slopes(residual)
        kink = 0.0 if program.kink is None else program.kink
        on_ramp = np.where((rate > 0.0) & (smooth.d > program.d), v, 0.0)
        for kind, part in enumerate((np.maximum(v, 0.0), np.minimum(v, 0.0), on_ramp)):
            V[kind, c] = part
            squares = part**2
            linear, kinked = part @ program.s, np.sum(kink * np.abs(part))
            gains[:, kind, c] = linear, program.d @ squares, smooth.d @ squares, kinked, part.sum()
        rows = np.flatnonzero(rate)
        curved.append((rows, rate[rows]))
    products = _products(block, maps, which, raw, V.reshape(3 * k, n), dtype)
    hessians = None
    if want_hessian:
        hessians = np.array([_hessian(raw, maps, point.working, rows, rate) for rows, rate in curved])
    return PassSums(loss, along, gains, products, hessians)


def _products(
    block: SampleBlock,
    maps: FeatureMaps,
    which: Sequence[int],
    raw: dict[int, AnyArray],
    V: Matrix,
    dtype: str,
) -> list[Matrix]:
    """Return R_m'v for every row v of V; features that are not known yet are made of samples with a v only."""
    found = {m: _through_rows(R, V) for m, R in raw.items()}
    others = [m for m in which if m not in raw]
    if others:
        rows = np.flatnonzero(V.any(axis=0))
        rows = rows if rows.size else np.arange(1)
        features = maps.raw(_safe_indexing(block.X, rows), others, dtype)
        found |= {m: _through_rows(R, V[:, rows]) for m, R in zip(others, features, strict=True)}
    return [found[m].T.reshape(-1, 3, V.shape[0] // 3) for m in which]


def _through_rows(R: AnyArray, V: Matrix) -> Matrix:
    """Return VR: one product after the other is faster than all at once while there are few."""
    V = V.astype(R.dtype, copy=False)
    if len(V) > FEW_ROWS:
        return np.asarray((V @ R).astype(np.float64, copy=False))
    return np.array([v @ R if v.any() else np.zeros(R.shape[1]) for v in V], dtype=np.float64)


def _values(raw: dict[int, AnyArray], maps: FeatureMaps, point: FeaturePoint) -> Matrix:
    """Return f of the samples in a block."""
    total: Any = point.bias
    for m, beta in zip(point.working, point.beta(maps), strict=True):
        total = total + (raw[int(m)] @ beta.astype(raw[int(m)].dtype)).astype(np.float64)
    return np.asarray(total)


def _hessian(
    raw: dict[int, AnyArray], maps: FeatureMaps, working: Indices, rows: Indices, rate: Vector
) -> Matrix:
    """Return Σ rate_i (φ_i, 1)(φ_i, 1)' over the rows."""
    parts = [_features(raw[int(m)][rows], maps.transforms[m]) for m in working]
    Z = np.hstack([*parts, np.ones((rows.size, 1), dtype=parts[0].dtype)])
    Z *= np.sqrt(rate)[:, None].astype(Z.dtype)
    return np.asarray((Z.T @ Z).astype(np.float64))


def _features(raw: AnyArray, T: Matrix | None) -> AnyArray:
    return raw if T is None else raw @ T.astype(raw.dtype)


def _through(T: Matrix | None, w: Matrix) -> Matrix:
    return w if T is None else T @ w


@dataclass(frozen=True)
class BoundedPoint:
    """A point with its bounds, the energies they were drawn from, and the width that losses were smoothed over."""

    point: FeaturePoint
    certificate: Certificate
    smoothed: Certificate  # of the problem with smoothed losses
    h: Vector = field(repr=False)
    width: float
    stopped: str = ""

    def entering(self, geometry: Geometry) -> Indices:
        """Return kernels outside the working set that the energies ask for, at most as many as are in it, or two."""
        outside = np.setdiff1d(np.arange(self.h.size), self.point.working)
        used = self.point.working[self.point.eta > 0.0]
        steep = self.h[outside] > self.h[used].min(initial=np.inf)
        wanted = outside[steep | (geometry.maximizer(self.h)[outside] > 0.0)]
        return np.sort(wanted[np.argsort(-self.h[wanted])][: max(2, self.point.working.size)])


@dataclass(frozen=True)
class FeatureProblem:
    """Samples, features that stand for their kernels, a loss and a set of kernel weights."""

    samples: SampleBlocks
    maps: FeatureMaps
    learner: ElementwiseLearner
    geometry: Geometry
    dtype: str = "float32"

    def zero(self, working: Indices, eta: Vector) -> FeaturePoint:
        """Return the point f = 0 with these weights."""
        k = self.samples.n_targets
        w = tuple(np.zeros((self.maps.sizes[m], k)) for m in working)
        return FeaturePoint(working, eta, w, np.zeros(k))

    def with_kernels(self, point: FeaturePoint, entering: Indices) -> FeaturePoint:
        """Return the point with more kernels, of weight zero."""
        more = self.zero(entering, np.zeros(entering.size))
        order = np.argsort(np.concatenate([point.working, entering]))
        w = (*point.w, *more.w)
        return FeaturePoint(
            np.concatenate([point.working, entering])[order],
            np.concatenate([point.eta, more.eta])[order],
            tuple(w[place] for place in order),
            point.bias,
        )

    def pass_over(
        self,
        point: FeaturePoint,
        before: FeaturePoint | None,
        shares: Vector,
        width: float,
        *,
        which: Sequence[int] | None = None,
        want_hessian: bool = False,
    ) -> PassSums:
        """Return the sums over all samples, with the products of some kernels (None: those of the point)."""
        kernels = point.working.tolist() if which is None else list(which)
        how = (shares, width, kernels, self.dtype, want_hessian)
        found: PassSums = self.samples.add_up(sums_over_block, self.maps, self.learner, point, before, *how)
        return found

    def bounds(
        self, point: FeaturePoint, sums: PassSums, width: float, which: Sequence[int] | None = None
    ) -> BoundedPoint:
        """Return the bounds that a pass proves, over the kernels whose products it has."""
        eta = point.eta
        if which is not None:
            eta = np.zeros(len(which))
            eta[point.working] = point.eta
        positive, negative = sums.gains[4, 0], -sums.gains[4, 1]
        scales = np.ones((2, positive.size))
        if self.learner.has_bias:
            tiny = np.finfo(np.float64).tiny
            scales[0] = np.minimum(1.0, negative / np.maximum(positive, tiny))
            scales[1] = np.minimum(1.0, positive / np.maximum(negative, tiny))
        kernels = point.working.tolist() if which is None else which
        h = np.array(
            [
                0.5
                * float(np.sum(_back(self.maps.transforms[m], np.sum(scales * product[:, :2], axis=1)) ** 2))
                for m, product in zip(kernels, sums.products, strict=True)
            ]
        )
        fixed = self.geometry.value(eta) + point.norm, self.geometry.conjugate(h)
        linear = scales * (sums.gains[0] - sums.gains[3])[:2]

        def certificate(loss: float, squares: Matrix) -> Certificate:
            gain = float(np.sum(linear - 0.5 * scales**2 * squares[:2]))
            return Certificate.enclosing(fixed[0] + loss, gain - fixed[1])

        smoothed = certificate(float(sums.smoothed[-1]), sums.gains[2])
        return BoundedPoint(point, certificate(sums.loss, sums.gains[1]), smoothed, h, width)

    def best_share(self, before: FeaturePoint, point: FeaturePoint, losses: Vector, shares: Vector) -> float:
        """Return the share of a step to take: all of it if the objective falls, else where it is lowest."""
        way = [before.towards(point, share) for share in shares]
        values = [
            self.geometry.value(one.eta) + one.norm + loss for one, loss in zip(way, losses, strict=True)
        ]
        return 1.0 if values[-1] <= values[0] else float(shares[int(np.argmin(values))])

    def quadratic(self, point: FeaturePoint, sums: PassSums, steeper: float = 1.0) -> tuple[AnyArray, Matrix]:
        """Return H and slopes with which ½ x'Hx − slopes'x are the losses near the point, x = w and bias.

        ``steeper`` asks for losses smoothed over a width smaller by this factor: coefficients that are between
        their bounds then are those that are now, and grow in proportion.
        """
        assert sums.hessians is not None
        k, D = len(point.bias), sum(w.shape[0] for w in point.w)
        H = steeper * sums.hessians
        rounding = 1e-7 if self.dtype == "float32" else 1e-13
        for c in range(k):  # rounding must not make it indefinite, nor a loss without curvature singular
            H[c][np.diag_indices(D + 1)] += rounding * np.trace(H[c]) / (D + 1) + 1e-12
        x = np.vstack([*point.w, point.bias[None]])
        share = np.array([1.0, 1.0, steeper - 1.0])[:, None]
        gradient = [
            _back(self.maps.transforms[m], np.sum(share * product, axis=1))
            for m, product in zip(point.working, sums.products, strict=True)
        ]
        total = np.sum(share * sums.gains[4], axis=0)
        return H, np.einsum("cij,jc->ic", H, x) + np.vstack([*gradient, total[None]])

    def model_minimiser(self, point: FeaturePoint, sums: PassSums, steeper: float = 1.0) -> FeaturePoint:
        """Return the minimiser of the objective with the losses by their slopes and curvature at the point."""
        return self.minimise(point, *self.quadratic(point, sums, steeper))

    def minimise(self, point: FeaturePoint, H: AnyArray, slopes: Matrix) -> FeaturePoint:
        """Return the minimiser of the objective with ½ x'Hx − slopes'x for losses, x being w and bias."""
        widths = np.array([w.shape[0] for w in point.w])
        w, bias, eta = minimise_model(H, slopes, widths, point.eta, self.geometry, self.learner.has_bias)
        return replace(point, eta=eta, w=tuple(np.split(w, np.cumsum(widths)[:-1])), bias=bias)


def _back(T: Matrix | None, product: Matrix) -> Matrix:
    """Return Φ'v from R'v."""
    return product if T is None else T.T @ product


# Steps in the weights on one model of the losses; each is a Cholesky factor of the features in use.
MODEL_STEPS = 20


def minimise_model(
    hessians: AnyArray, slopes: Matrix, widths: Indices, eta: Vector, geometry: Geometry, has_bias: bool
) -> tuple[Matrix, Vector, Vector]:
    """Return w, bias and eta that minimise r(eta) + ½ Σ ||w_m||²/eta_m + Σ_c (½ x_c'H_c x_c − slopes_c'x_c).

    x_c are w and bias of column c, one below the other. Given eta the minimum is one linear system per column; its
    value is a function of eta whose gradient and curvature are known from the same factor.
    """
    k, D = hessians.shape[0], hessians.shape[1] - 1
    ends = np.concatenate([[0], np.cumsum(widths)])
    H, r = np.empty((k, D, D)), np.empty((D, k))
    for c in range(k):
        pivot, coupling = hessians[c, D, D], hessians[c, :D, D]
        share = coupling / pivot if has_bias else np.zeros(D)
        H[c] = hessians[c, :D, :D] - np.outer(share, coupling)
        r[:, c] = slopes[:D, c] - share * slopes[D, c]
    w, h, curvature = _at_weights(H, r, eta, ends)
    value = geometry.value(eta) - 0.5 * float(np.sum(r * w))
    for _ in range(MODEL_STEPS):
        if fenchel_young_gap(geometry, eta, h) <= 1e-8 * abs(float(eta @ h)):
            break
        step = geometry.model_step(eta, h, curvature) - eta
        for share in 0.5 ** np.arange(
            12
        ):  # the value is convex in eta, but not the quadratic that the step is for
            after = eta + share * step
            w_after, h_after, bent = _at_weights(H, r, after, ends)
            lower = geometry.value(after) - 0.5 * float(np.sum(r * w_after))
            if lower < value:
                break
        else:
            break
        eta, w, h, curvature, value = after, w_after, h_after, bent, lower
    bias = np.zeros(k)
    for c in range(k if has_bias else 0):
        bias[c] = (slopes[D, c] - hessians[c, :D, D] @ w[:, c]) / hessians[c, D, D]
    return w, bias, eta


def _at_weights(H: AnyArray, r: Matrix, eta: Vector, ends: Indices) -> tuple[Matrix, Vector, Matrix]:
    """Return the best w for given weights, the energies there, and the curvature of the value in the weights."""
    D, k = r.shape
    root = np.sqrt(np.repeat(eta, np.diff(ends)))
    on = root > 0.0
    if not on.any():  # all weights may be zero, for a ball
        root, on = np.zeros(D), on
    w, h, curvature = np.zeros((D, k)), np.zeros(eta.size), np.zeros((eta.size, eta.size))
    for c in range(k):
        A = root[on, None] * H[c][np.ix_(on, on)] * root[on]
        A[np.diag_indices_from(A)] += 1.0
        factor = cho_factor(A, overwrite_a=True, check_finite=False)
        w[on, c] = root[on] * cho_solve(factor, root[on] * r[on, c], check_finite=False)
        theta = r[:, c] - H[c] @ w[:, c]
        by_kernel = np.zeros((D, eta.size))
        for m in range(eta.size):
            by_kernel[ends[m] : ends[m + 1], m] = theta[ends[m] : ends[m + 1]]
        h += 0.5 * np.sum(by_kernel**2, axis=0)
        bent = H[c] @ by_kernel
        scaled = root[on, None] * bent[on]
        curvature += by_kernel.T @ bent - scaled.T @ cho_solve(factor, scaled, check_finite=False)
    return w, h, 0.5 * (curvature + curvature.T)
