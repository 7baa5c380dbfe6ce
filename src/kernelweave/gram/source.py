"""Where the values of kernels come from: a group that evaluates them, training samples, and their scaling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.kernels.fitted_scaling import ScaledForm
from kernelweave.kernels.given import Precomputed
from kernelweave.kernels.groups import GivenGroup, KernelGroup


@dataclass(frozen=True)
class NewRows:
    """New samples as a source reads them: their rows, and how each of its kernels is scaled on them."""

    rows: Any = field(repr=False)
    forms: tuple[ScaledForm, ...] = field(repr=False)

    def in_dtype(self, group: KernelGroup, dtype: str) -> NewRows:
        """Return the same samples, for values in this precision where the group can."""
        return NewRows(group.rows_in_dtype(self.rows, dtype), self.forms)


@dataclass(frozen=True)
class KernelSource:
    """Kernels of a stack that read the same features of the same training samples.

    Parameters
    ----------
    kernels : their positions in the stack.
    group : what evaluates them.
    rows : the training samples as the group reads them.
    forms : how each kernel is scaled.
    n_samples : how many samples the stack has.
    samples : which of them have these features, ascending; None: all. Of the others all values are zero.
    """

    kernels: Indices
    group: KernelGroup = field(repr=False)
    rows: Any = field(repr=False)
    forms: tuple[ScaledForm, ...] = field(repr=False)
    n_samples: int
    samples: Indices | None = field(default=None, repr=False)

    @property
    def n_columns(self) -> int:
        """How many numbers it holds of a sample; of a sparse one its entries, each with its place."""
        if hasattr(self.rows, "nnz"):
            return int(2 * self.rows.nnz) // max(int(self.rows.shape[0]), 1) + 1
        return int(self.rows.shape[1]) if self.rows.ndim == 2 else 0

    # -- parts of it

    def renumbered_subset(self, which: Indices) -> KernelSource | None:
        """Return those of its kernels that are among some, under their positions there; None if none is."""
        place = {int(m): position for position, m in enumerate(which)}
        own = [a for a, m in enumerate(self.kernels) if int(m) in place]
        if not own:
            return None
        return replace(
            self,
            kernels=np.array([place[int(self.kernels[a])] for a in own], dtype=np.intp),
            group=self.group.only(own),
            forms=tuple(self.forms[a] for a in own),
        )

    def at(self, rows: Indices) -> KernelSource:
        """Return the kernels of some samples alone; rows ascend."""
        local = self._local(rows)
        samples = None
        if self.samples is not None:
            samples = np.flatnonzero(local >= 0)
            local = local[samples]
        forms = tuple(form.at(local) for form in self.forms)
        return replace(self, rows=self.rows[local], forms=forms, n_samples=rows.size, samples=samples)

    def in_dtype(self, dtype: str) -> KernelSource:
        """Return the same kernels, evaluated in this precision where the group can."""
        return replace(self, rows=self.group.rows_in_dtype(self.rows, dtype))

    def centred(self, shifts: Matrix) -> KernelSource:
        """Return kernels K_ij − r_i − r_j, with one row of shifts r for every kernel of the stack."""
        own = shifts[self.kernels] if self.samples is None else shifts[self.kernels][:, self.samples]
        if not own.any():
            return self
        return replace(self, forms=tuple(form.minus(r) for form, r in zip(self.forms, own, strict=True)))

    def weighted(self, factors: Matrix) -> KernelSource:
        """Return kernels f_i f_j K_ij, with one row of factors f for every kernel of the stack."""
        own = factors[self.kernels] if self.samples is None else factors[self.kernels][:, self.samples]
        return replace(self, forms=tuple(form.times(f) for form, f in zip(self.forms, own, strict=True)))

    # -- values

    def block(
        self, rows: Span, columns: Span, which: Sequence[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, K_m[rows, columns]) for its kernels, or for those at these positions; float64."""
        left, right = self._local(rows), self._local(columns)
        if self.samples is None:
            for a, K in self.unscaled_values(self.rows[left], self.rows[right], which):
                form = self.forms[a]
                yield int(self.kernels[a]), form.at(left).values(K, form.at(right))
            return
        inside = np.flatnonzero(left >= 0), np.flatnonzero(right >= 0)
        i, j = left[inside[0]], right[inside[1]]
        for a, K in self.unscaled_values(self.rows[i], self.rows[j], which):
            full = np.zeros((left.size, right.size))
            full[np.ix_(*inside)] = self.forms[a].at(i).values(K, self.forms[a].at(j))
            yield int(self.kernels[a]), full

    def unscaled_values(
        self, left: Any, right: Any, which: Sequence[int] | None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (a, unscaled values of its kernel a), of all or of those at some positions in the stack."""
        own = [a for a, m in enumerate(self.kernels) if which is None or int(m) in which]
        if own:
            yield from zip(own, self.group.only(own).values(left, right), strict=True)

    @cached_property
    def _unscaled_diagonals(self) -> Matrix:
        return self.group.diagonals(self.rows)

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        """Yield (m, diagonal of K_m) for each of its kernels."""
        for m, form, diagonal in zip(self.kernels, self.forms, self._unscaled_diagonals, strict=True):
            full = np.zeros(self.n_samples)
            full[slice(None) if self.samples is None else self.samples] = form.diagonal(diagonal)
            yield int(m), full

    def sizes(self) -> Vector:
        """Return the largest of the terms that values are differences of: what rounding is a share of."""
        terms = (form.terms(d) for form, d in zip(self.forms, self._unscaled_diagonals, strict=True))
        return np.array([own.max(initial=0.0) for own in terms])

    # -- products and sums, without a matrix

    def add_products(
        self, columns: Indices, coef: AnyArray, out: AnyArray, n_threads: int, weights: Vector | None = None
    ) -> None:
        """Add K_m[:, columns] coef to out[m] for each of its kernels; with weights, their weighted sum to out.

        Without weights ``coef`` may have a matrix for each kernel of the stack.
        """
        right, coef = self._present(columns, coef)
        if right.size == 0:
            return
        places = np.arange(self.n_samples) if self.samples is None else self.samples
        if weights is None:
            own = coef if coef.ndim == 2 else coef[self.kernels]
            out[self.kernels[:, None], places] += self._products(right, own, n_threads)
        else:
            out[places] += self._weighted_products(right, coef, weights[self.kernels], n_threads)

    def energies(self, columns: Indices, coef: Matrix, n_threads: int) -> Vector:
        """Return ½ tr(coef' K_m[columns, columns] coef) for each of its kernels."""
        right, coef = self._present(columns, coef)
        if right.size == 0:
            return np.zeros(self.kernels.size)
        rows, out = self.rows[right], np.empty(self.kernels.size)
        if self._evenly_scaled:
            out[self._evenly_scaled] = self._factors * self.group.only(self._evenly_scaled).energies(
                rows, coef, n_threads
            )
        for a in self._unevenly_scaled:
            weighted = self.forms[a].factors[right, None] * coef
            out[a] = self.group.only([a]).energies(rows, weighted, n_threads)[0]
        for a in self._with_shifts:
            for u, w in self.forms[a].shifts:
                out[a] -= float((u[right] @ coef) @ (w[right] @ coef))
        return out

    def add_weighted_block(
        self, rows: Indices, columns: Indices, weights: Vector, out: AnyArray, n_threads: int
    ) -> None:
        """Add Σ_m weights_m K_m[rows, columns] to out."""
        own = weights[self.kernels]
        if self._is_plain:
            left = self.rows[rows]
            right = left if rows is columns else self.rows[columns]
            self.group.add_weighted_values(left, right, own * self._factors, out, n_threads)
            return
        for m, K in self.block(rows, columns, [int(self.kernels[a]) for a in np.flatnonzero(own)]):
            out += weights[m] * K

    def _products(
        self, right: Indices, coef: AnyArray, n_threads: int, new: NewRows | None = None
    ) -> AnyArray:
        """Return K_m(left, right) coef of all kernels; ``left`` are all samples that it has, or new ones.

        ``coef`` serves all kernels, or has a matrix for each.
        """
        left, forms = (self.rows, self.forms) if new is None else (new.rows, new.forms)
        rows, out = self.rows[right], np.empty((len(forms), left.shape[0], coef.shape[-1]))
        together = self._evenly_scaled if coef.ndim == 2 else []
        if together:
            raw = self.group.only(together).products(left, rows, coef, n_threads)
            for a, product, factor in zip(together, raw, self._factors, strict=True):
                # New samples may have factors of their own where all training samples have the same.
                out[a] = (
                    factor * product if new is None else forms[a].factors[:, None] * np.sqrt(factor) * product
                )
        for a in range(len(forms)):
            V = coef if coef.ndim == 2 else coef[a]
            if a not in together:
                weighted = self.forms[a].factors[right, None] * V
                out[a] = self.group.only([a]).products(left, rows, weighted, n_threads)[0]
                out[a] *= forms[a].factors[:, None]
            for (u, w), (u_right, w_right) in zip(forms[a].shifts, self.forms[a].shifts, strict=True):
                out[a] -= np.outer(u, w_right[right] @ V) + np.outer(w, u_right[right] @ V)
        return out

    def _weighted_products(
        self, right: Indices, coef: Matrix, weights: Vector, n_threads: int, new: NewRows | None = None
    ) -> Matrix:
        if not self._is_plain or (new is not None and not self._scales_alike(new)):
            return np.asarray(np.tensordot(weights, self._products(right, coef, n_threads, new), 1))
        left = self.rows if new is None else new.rows
        return self.group.weighted_products(left, self.rows[right], coef, weights * self._factors, n_threads)

    # -- new samples

    def cross(
        self, new: NewRows, columns: Span, which: Sequence[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, K_m between new samples and some training samples) for its kernels, or some of them."""
        for a, K in self.unscaled_values(new.rows, self.rows[columns], which):
            yield int(self.kernels[a]), new.forms[a].values(K, self.forms[a].at(columns))

    def cross_products(
        self, new: NewRows, columns: Indices, coef: AnyArray, n_threads: int, weights: Vector | None = None
    ) -> AnyArray:
        """Return K_m(new, columns) coef for each of its kernels; with weights, their weighted sum.

        Without weights ``coef`` may have a matrix for each kernel.
        """
        if weights is None:
            return self._products(columns, coef, n_threads, new)
        return self._weighted_products(columns, coef, weights[self.kernels], n_threads, new)

    def _scales_alike(self, new: NewRows) -> bool:
        """Whether new samples are multiplied by the same numbers as training samples."""
        return all(
            form.common_factor == factor for form, factor in zip(new.forms, self._factors, strict=True)
        )

    # -- precision

    def fits_float32(self) -> bool:
        """Return whether values, and all numbers on the way to them, are within the range of single precision."""
        sizes = np.array([np.abs(diagonal).max(initial=0.0) for _, diagonal in self.diagonals()])
        in_range = (sizes == 0.0) | ((sizes > 1e-25) & (sizes < 1e25))
        return bool(in_range.all()) and self.group.fits_float32(self.rows)

    def energy_errors(self, columns: Indices, coef: Matrix) -> Vector:
        """Bound how far energies in single precision may be off: at worst, all values err alike."""
        right, coef = self._present(columns, coef)
        errors, out = self.group.errors_in_float32(self.rows), np.zeros(self.kernels.size)
        for a, form in enumerate(self.forms):
            sums = np.abs(form.factors[right, None] * coef).sum(axis=0)
            out[a] = 0.5 * errors[a] * float(np.sum(sums**2))
        return out

    # -- which kernels are scaled how

    @cached_property
    def _evenly_scaled(self) -> list[int]:
        """The kernels that are multiplied by one number."""
        return [a for a, form in enumerate(self.forms) if form.common_factor is not None]

    @cached_property
    def _factors(self) -> Vector:
        """The numbers the kernels of `_evenly_scaled` are multiplied by."""
        return np.array([form.common_factor for form in self.forms if form.common_factor is not None])

    @cached_property
    def _unevenly_scaled(self) -> list[int]:
        return [a for a, form in enumerate(self.forms) if form.common_factor is None]

    @cached_property
    def _with_shifts(self) -> list[int]:
        return [a for a, form in enumerate(self.forms) if form.shifts]

    @property
    def _is_plain(self) -> bool:
        """Whether all samples have the features, and every kernel is multiplied by one number at most."""
        return self.samples is None and not self._unevenly_scaled and not self._with_shifts

    def _present(self, columns: Indices, coef: AnyArray) -> tuple[Indices, AnyArray]:
        """Return the columns that it has, by their places among its samples, with their coefficients."""
        local = self._local(columns)
        return (local, coef) if self.samples is None else (local[local >= 0], coef[..., local >= 0, :])

    def _local(self, span: Span) -> Any:
        """Return the places of samples of the stack among those it has, −1 for the others."""
        if self.samples is None:
            return span
        place = np.full(self.n_samples, -1)
        place[self.samples] = np.arange(self.samples.size)
        return place[span]


def matrix_sources(matrices: Sequence[Matrix], forms: Sequence[ScaledForm] = ()) -> list[KernelSource]:
    """Return sources of matrices that exist, one each, perhaps scaled."""
    n = int(matrices[0].shape[0])
    samples, scaled = np.arange(n), forms or [ScaledForm.plain(n)] * len(matrices)
    return [
        KernelSource(np.array([m]), GivenGroup(Precomputed(), K), samples, (form,), n)
        for m, (K, form) in enumerate(zip(matrices, scaled, strict=True))
    ]
