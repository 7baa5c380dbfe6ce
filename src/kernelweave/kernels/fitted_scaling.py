"""Scalings after they saw the training Gram: they only apply what was learnt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelweave._typing import Indices, Matrix, Span, Vector

# Centring subtracts numbers of similar size: what is left below this share of them is rounding.
CANCELLED = 1e-14


@dataclass(frozen=True)
class ScaledForm:
    """What scalings made of a kernel, as numbers of some samples.

    Between samples i with this form and j with another, the scaled kernel is

        f_i f_j k(x_i, x_j) − Σ_r (u_ri w_rj + w_ri u_rj).

    ``factors`` are the f of these samples, ``shifts`` the pairs (u_r, w_r). Multiplying, normalising and
    centring, in any order, lead from one such form to another, so that no scaled matrix need ever exist.
    """

    factors: Vector
    shifts: tuple[tuple[Vector, Vector], ...] = ()

    @classmethod
    def plain(cls, n_samples: int) -> ScaledForm:
        """Return the form of an unscaled kernel."""
        return cls(np.broadcast_to(1.0, n_samples))  # one number in memory, however many samples

    @cached_property
    def common_factor(self) -> float | None:
        """f² where it is the same for all samples, else None."""
        first = float(self.factors[0]) if self.factors.size else 1.0
        return first**2 if self.factors.strides == (0,) or bool((self.factors == first).all()) else None

    def at(self, samples: Span) -> ScaledForm:
        """Return the form of some of the samples."""
        shifts = tuple((u[samples], w[samples]) for u, w in self.shifts)
        if self.factors.strides == (0,) and not isinstance(samples, slice):
            return ScaledForm(np.broadcast_to(self.factors[:1].sum(), samples.size), shifts)
        return ScaledForm(self.factors[samples], shifts)

    def times(self, factors: Vector | float) -> ScaledForm:
        """Return the form of f_i f_j times the kernel so far."""
        shifts = tuple((factors * u, factors * w) for u, w in self.shifts)
        if np.ndim(factors) == 0 and self.factors.strides == (0,) and self.factors.size:
            return ScaledForm(np.broadcast_to(self.factors[0] * factors, self.factors.shape), shifts)
        return ScaledForm(self.factors * factors, shifts)

    def minus(self, u: Vector) -> ScaledForm:
        """Return the form of the kernel so far minus u_i + u_j."""
        return ScaledForm(self.factors, (*self.shifts, (u, np.ones_like(u))))

    def values(self, K: Matrix, other: ScaledForm) -> Matrix:
        """Return the scaled values between these samples and others, given those of the kernel itself."""
        if self.common_factor == 1.0 and other.common_factor == 1.0 and not self.shifts:
            return K
        out = np.empty(K.shape)
        for start in range(0, len(out), 64):  # a few rows at a time: no second matrix is made
            rows = slice(start, start + 64)
            out[rows] = K[rows] * (self.factors[rows, None] * other.factors)
            for (u, w), (u_other, w_other) in zip(self.shifts, other.shifts, strict=True):
                out[rows] -= u[rows, None] * w_other + w[rows, None] * u_other
        return out

    def diagonal(self, diagonal: Vector) -> Vector:
        """Return k(x, x) after scaling, given that before; what only rounding leaves of it is 0."""
        scaled = self.factors**2 * diagonal
        if not self.shifts:
            return scaled
        left = scaled - sum((2.0 * u * w for u, w in self.shifts), np.zeros_like(scaled))
        return np.where(left > CANCELLED * self.terms(diagonal), left, 0.0)

    def terms(self, diagonal: Vector) -> Vector:
        """Return the sum of the sizes of what scaled k(x, x) is a difference of: their rounding is what counts."""
        scaled = np.abs(self.factors**2 * diagonal)
        return sum((np.abs(2.0 * u * w) for u, w in self.shifts), scaled)

    def products(self, product: Callable[[Matrix], Matrix], other: ScaledForm, coef: Matrix) -> Matrix:
        """Return the scaled kernel between these samples and others times ``coef``.

        ``product`` returns the product of the kernel itself with coefficients.
        """
        out = self.factors[:, None] * product(other.factors[:, None] * coef)
        for (u, w), (u_other, w_other) in zip(self.shifts, other.shifts, strict=True):
            out -= np.outer(u, w_other @ coef) + np.outer(w, u_other @ coef)
        return out


@dataclass(frozen=True)
class NewSamples:
    """New samples as scalings see them: k(x, x), and products of their rows with vectors of training samples."""

    form: ScaledForm
    training: ScaledForm
    diagonal: Callable[[], Vector]
    product: Callable[[Matrix], Matrix]

    @property
    def scaled_diagonal(self) -> Vector:
        return self.form.diagonal(self.diagonal())

    @property
    def row_means(self) -> Vector:
        """The mean of every row against the training samples, after the scalings so far."""
        n = self.training.factors.size
        return self.form.products(self.product, self.training, np.full((n, 1), 1.0 / n))[:, 0]


class FittedScaling(ABC):
    """A change of the feature map, learnt on the training Gram, for that Gram and for new rows."""

    # Whether new samples are scaled by their own k(x, x).
    needs_diagonal: bool = False

    @abstractmethod
    def on_training(self, form: ScaledForm) -> ScaledForm:
        """Return the form of the training samples after this scaling, given that before."""

    @abstractmethod
    def on_new(self, samples: NewSamples) -> ScaledForm:
        """Return the form of new samples after this scaling."""

    def restricted(self, samples: Indices) -> FittedScaling:  # noqa: ARG002 - few look at single samples
        """Return the scaling for some of the training samples."""
        return self

    def train(self, K: Matrix) -> Matrix:
        """Return the scaled training Gram, exactly symmetric; ``K`` is left as it is."""
        form = self.on_training(ScaledForm.plain(len(K)))
        scaled = form.values(K, form)
        if scaled is K:
            return K.copy()
        np.fill_diagonal(scaled, form.diagonal(np.diagonal(K)))
        return scaled

    def rows(self, K: Matrix, diagonal: Vector | None = None) -> Matrix:
        """Return scaled new rows ``K`` (new, training), given k(x, x) of the new samples where needed."""
        if self.needs_diagonal and diagonal is None:
            raise ValueError("UnitDiagonal needs k(x, x) of the new samples; pass it as `diagonal`.")
        new, training = self.forms(
            K.shape[1], K.shape[0], lambda: np.asarray(diagonal), lambda V: np.asarray(K @ V)
        )
        return new.values(K, training)

    def forms(
        self,
        n_training: int,
        n_new: int,
        diagonal: Callable[[], Vector],
        product: Callable[[Matrix], Matrix],
    ) -> tuple[ScaledForm, ScaledForm]:
        """Return the forms of new and of training samples."""
        before = ScaledForm.plain(n_training)
        new = self.on_new(NewSamples(ScaledForm.plain(n_new), before, diagonal, product))
        return new, self.on_training(before)


@dataclass(frozen=True)
class Multiplied(FittedScaling):
    """Every entry times one factor."""

    factor: float

    def on_training(self, form: ScaledForm) -> ScaledForm:
        return form.times(self.factor**0.5)

    def on_new(self, samples: NewSamples) -> ScaledForm:
        return samples.form.times(self.factor**0.5)


@dataclass(frozen=True)
class Spherical(FittedScaling):
    """Every sample divided by its length; ``inverse_lengths`` are those of the training samples."""

    inverse_lengths: Vector

    needs_diagonal = True

    def on_training(self, form: ScaledForm) -> ScaledForm:
        return form.times(self.inverse_lengths)

    def on_new(self, samples: NewSamples) -> ScaledForm:
        return samples.form.times(inverse_lengths(samples.scaled_diagonal))

    def restricted(self, samples: Indices) -> Spherical:
        return Spherical(self.inverse_lengths[samples])


@dataclass(frozen=True)
class Centered(FittedScaling):
    """The mean of the training samples moved to the origin of the feature space.

    ``column_means`` and ``mean`` are of the training Gram; ``vanishes`` says that only rounding is left.
    """

    column_means: Vector
    mean: float
    vanishes: bool = False

    def on_training(self, form: ScaledForm) -> ScaledForm:
        return form.times(0.0) if self.vanishes else form.minus(self.column_means - 0.5 * self.mean)

    def on_new(self, samples: NewSamples) -> ScaledForm:
        return (
            samples.form.times(0.0)
            if self.vanishes
            else samples.form.minus(samples.row_means - 0.5 * self.mean)
        )

    def restricted(self, samples: Indices) -> FittedScaling:  # noqa: ARG002
        # The mean of all samples is not known to some of them; where coefficients sum to zero it does not count.
        return Multiplied(0.0 if self.vanishes else 1.0)


@dataclass(frozen=True)
class Chained(FittedScaling):
    """Several fitted scalings, one after the other."""

    links: tuple[FittedScaling, ...]

    @property
    def needs_diagonal(self) -> bool:  # type: ignore[override]
        return any(link.needs_diagonal for link in self.links)

    def on_training(self, form: ScaledForm) -> ScaledForm:
        for link in self.links:
            form = link.on_training(form)
        return form

    def on_new(self, samples: NewSamples) -> ScaledForm:
        training, form = samples.training, samples.form
        for link in self.links:
            form = link.on_new(NewSamples(form, training, samples.diagonal, samples.product))
            training = link.on_training(training)
        return form

    def restricted(self, samples: Indices) -> Chained:
        return Chained(tuple(link.restricted(samples) for link in self.links))


def inverse_lengths(diagonal: Vector) -> Vector:
    """Return 1 / sqrt(k(x, x)), and 0 for a sample of length 0."""
    roots = np.sqrt(np.maximum(diagonal, 0.0))
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0.0)
