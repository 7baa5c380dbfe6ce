"""Inner products of kernels with one another and with the labels, in one pass over their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.gram.source import Source, centring, largest_entries

# All kernels' rows are made together in blocks of about this many entries: 64 MB.
ENTRIES = 1 << 23
# A kernel whose norm is below this share of its size is a constant plus rounding: it has no direction.
CONSTANT = 1e-12


@dataclass(frozen=True)
class Moments:
    r"""⟨K_p, K_q⟩, ⟨K_p, t_c t_c'⟩ and ⟨t_c, t_d⟩², weighted by the samples: all that alignment asks for.

    ``products`` is (M, M) with zero rows for kernels that have no direction, ``targets`` (M, columns),
    ``codes`` (columns, columns). The target kernel is Σ_c t_c t_c' over the columns.
    """

    products: Matrix
    targets: Matrix
    codes: Matrix

    @property
    def with_target(self) -> Vector:
        """⟨K_m, T⟩ for every kernel."""
        return np.asarray(self.targets.sum(axis=1))

    @property
    def norms(self) -> Vector:
        """‖K_m‖ for every kernel."""
        return np.sqrt(np.diagonal(self.products))

    @property
    def target_norm(self) -> float:
        """‖T‖."""
        return float(np.sqrt(self.codes.sum()))

    def column(self, c: int) -> Moments:
        """Return the moments with t_c t_c' alone as the target."""
        return Moments(self.products, self.targets[:, c : c + 1], self.codes[c : c + 1, c : c + 1])

    def of_kernels(self) -> Vector:
        """Return the alignment of every kernel with the target; 0 where one of the two has no direction."""
        lengths = self.norms * self.target_norm
        return np.divide(self.with_target, lengths, out=np.zeros(lengths.size), where=lengths > 0.0)

    def of_combination(self, eta: Vector) -> float:
        """Return the alignment of Σ eta_m K_m with the target."""
        length = float(np.sqrt(max(float(eta @ self.products @ eta), 0.0))) * self.target_norm
        return float(eta @ self.with_target) / length if length > 0.0 else 0.0


def moments(
    sources: Sequence[Source], n_kernels: int, codes: Matrix, weight: Vector, *, centred: bool
) -> Moments:
    """Return the moments of the kernels and of the columns of ``codes``; centred by weighted means, or not.

    ⟨K, L⟩ = Σ w_i w_j K_ij L_ij. Kernels are shifted by the mean of a few samples first, which centring
    undoes in exact arithmetic: what is left to subtract afterwards, r_i = Σ w_j K_ij, is then small.
    """
    n, total = weight.size, float(weight.sum())
    for source in sources:
        source.check()
    shifts = centring(sources, n_kernels, n) if centred else np.zeros((n_kernels, n))
    T = codes - (weight @ codes) / total if centred else codes
    root, even = np.sqrt(weight), bool((weight == 1.0).all())
    products, targets = np.zeros((n_kernels, n_kernels)), np.zeros((n_kernels, T.shape[1]))
    sums = np.empty((n_kernels, n))
    for rows, K in _row_blocks(sources, n_kernels, n):
        if centred:
            K -= shifts[:, rows, None]
            K -= shifts[:, None, :]
        sums[:, rows] = K @ weight
        targets += np.einsum("ic,mic->mc", weight[rows, None] * T[rows], K @ (weight[:, None] * T))
        if not even:
            K *= root[rows, None]
            K *= root
        flat = K.reshape(n_kernels, -1)
        products += flat @ flat.T
    if centred:
        grand = sums @ weight
        products -= 2.0 / total * (sums * weight) @ sums.T - np.outer(grand, grand) / total**2
    sizes = total * largest_entries(sources, n_kernels)
    flat_kernels = np.sqrt(np.maximum(np.diagonal(products), 0.0)) <= CONSTANT * sizes
    products[flat_kernels], products[:, flat_kernels], targets[flat_kernels] = 0.0, 0.0, 0.0
    weighted = root[:, None] * T
    return Moments(products, targets, (weighted.T @ weighted) ** 2)


def simplex_code(index: AnyArray, n_classes: int) -> Matrix:
    """Return one row per sample whose inner products are 1 within a class and −1/(classes − 1) between two.

    For two classes it is the kernel yy' of labels ±1.
    """
    one_hot = np.eye(n_classes)[index]
    return np.asarray(np.sqrt(n_classes / (n_classes - 1.0)) * (one_hot - 1.0 / n_classes))


def _row_blocks(sources: Sequence[Source], n_kernels: int, n: int) -> Iterator[tuple[slice, AnyArray]]:
    """Yield rows and the rows of all kernels, (M, rows, n), in one buffer that may be written to."""
    everything = slice(0, n)
    whole = {m: K for source in sources if source.is_whole for m, K in source.block(everything, everything)}
    by_rows = [source for source in sources if not source.is_whole]
    step = min(n, max(1, ENTRIES // max(n_kernels * n, 1)))
    buffer = np.empty(n_kernels * step * n)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        shape = (n_kernels, rows.stop - start, n)
        K = buffer[: shape[0] * shape[1] * n].reshape(shape)
        for m, full in whole.items():
            K[m] = full[rows]
        for source in by_rows:
            for m, block in source.block(rows, everything):
                K[m] = block
        yield rows, K
