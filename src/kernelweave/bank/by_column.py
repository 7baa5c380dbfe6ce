"""What a model learnt on one table says of its columns, where every kernel is linear or looks at one column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.fitted import BlockKernels, FittedBank
from kernelweave.bank.layout import Block
from kernelweave.bank.protocol import FittedKernels
from kernelweave.errors import NotOfferedError
from kernelweave.gram import StreamedGrams
from kernelweave.views.tables import is_sparse


def slopes(fitted: FittedKernels, eta: Matrix, coef: Matrix, support: Indices) -> Matrix:
    """Return the slope in every column of Σ_m eta[c, m] Σ_j k_m(·, x_j) coef[c, j], of shape (problems, columns).

    Raises NotOfferedError unless all kernels with weight are linear in columns of one table.
    """
    bank = _of_one_table(fitted)
    found = np.zeros((len(coef), _n_columns(bank)))
    for kernels, a, m in _in_use(bank, eta):
        kernel, form = kernels.source.group.kernels[a], kernels.source.forms[a]
        if not kernel.is_linear or form.common_factor is None:
            scaled = " scaled sample by sample" if kernel.is_linear else ""
            raise NotOfferedError(f"kernel {bank.names[m]!r}{scaled} is not linear in the columns")
        rows = bank.training(kernels.block)
        slope = np.asarray(coef @ rows[support])
        if form.shifts:  # centred: the mean of the rows is the origin
            slope = slope - np.outer(coef.sum(axis=1), np.asarray(rows.mean(axis=0)).ravel())
        places, units = _columns_of(bank, kernels.block)
        # A view may name a column twice, which `+=` would count once.
        np.add.at(found.T, np.asarray(places), (eta[:, [m]] * form.common_factor * slope * units).T)
    return found


def spreads(fitted: FittedKernels, eta: Matrix, coef: Matrix, support: Indices, n_threads: int = 1) -> Matrix:
    """Return the standard deviation, over the training samples, of what the kernels of every column add up to.

    Of shape (problems, columns). What kernels of several columns add is shared out evenly among these. Raises
    NotOfferedError unless every column that a kernel looks at has kernels of its own.
    """
    bank = _of_one_table(fitted)
    blocks = _blocks(bank)
    looks_at = [tuple(sorted({p for part in block.parts for p in part.positions})) for block in blocks]
    alone = {places[0] for places in looks_at if len(places) == 1}
    for block, places in zip(blocks, looks_at, strict=True):
        if not alone.issuperset(places):
            raise NotOfferedError(f"not every column of {block.label!r} has kernels of its own")
    V = np.zeros((bank.n_samples, len(coef)))
    V[support] = coef.T
    parts = {places: np.zeros(V.shape) for places in looks_at}
    for number, m, values in _products(bank, eta, V, n_threads):
        parts[looks_at[number]] += values * eta[:, m]
    found = np.zeros((len(coef), _n_columns(bank)))
    for places, total in parts.items():
        found[:, list(places)] += total.std(axis=0)[:, None] / len(places)
    return found


def _products(bank: FittedBank, eta: Matrix, V: Matrix, n_threads: int) -> Iterator[tuple[int, int, Matrix]]:
    """Yield (block, m, K_m V) for every kernel that has weight."""
    which = np.flatnonzero(eta.any(axis=0))
    sources = [part for source in bank.sources() if (part := source.renumbered_subset(which)) is not None]
    grams = StreamedGrams(sources, which.size, bank.n_samples, n_threads=n_threads)
    for m, values in zip(which.tolist(), grams.matvecs(V) if which.size else (), strict=True):
        yield bank.block_of_kernel[m], m, values


def training_rows(fitted: FittedKernels, samples: Indices) -> AnyArray:
    """Return these training samples as rows of the table that was given.

    Raises NotOfferedError where the kernels do not hold every column as it was.
    """
    bank = _of_one_table(fitted)
    columns: dict[int, AnyArray] = {}
    for number, block in enumerate(_blocks(bank)):
        if not block.holds_objects and _is_raw(block):
            rows = bank.training(number)[samples]
            values = rows.toarray() if is_sparse(rows) else np.asarray(rows)
            columns |= dict(zip(block.parts[0].positions, values.T, strict=True))
    lacking = _n_columns(bank) - len(columns)
    if lacking:
        raise NotOfferedError(f"{lacking} column(s) are encoded, or no kernel looks at them")
    return np.column_stack([columns[place] for place in sorted(columns)])


def _of_one_table(fitted: FittedKernels) -> FittedBank:
    complete = fitted.complete
    if not isinstance(complete, FittedBank):
        raise NotOfferedError("the kernels were given as they are, or some samples lack views")
    blocks = _blocks(complete)
    if len(blocks) < len(complete.blocks) or any(p.view is not None for b in blocks for p in b.parts):
        raise NotOfferedError("the samples were several views, and not one table")
    return complete


def _blocks(bank: FittedBank) -> list[Block]:
    return [block for block in bank.blocks if isinstance(block, Block)]


def _in_use(bank: FittedBank, eta: Matrix) -> Iterator[tuple[BlockKernels, int, int]]:
    """Yield (kernels of a block, position there, number) for every kernel that has weight."""
    for kernels in bank.groups():
        for a, m in enumerate(kernels.source.kernels.tolist()):
            if eta[:, m].any():
                yield kernels, a, m


def _n_columns(bank: FittedBank) -> int:
    return _blocks(bank)[0].parts[0].n_columns


def _is_raw(block: Block) -> bool:
    return len(block.parts) == 1 and block.parts[0].encoder is None


def _columns_of(bank: FittedBank, number: int) -> tuple[list[int], Any]:
    """Return which column of the table each column of a block is, and its factor there."""
    block = _blocks(bank)[number]
    part = block.parts[0]
    if part.encoder is None:
        return list(part.positions), 1.0
    units = part.encoder.factors_by_column
    if units is None:
        raise NotOfferedError(f"the columns of {block.label!r} are encoded by their type")
    kept, factors = units
    return [part.positions[j] for j in kept], factors
