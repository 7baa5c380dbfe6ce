"""Warnings about columns that can teach nothing, or that tell what they should not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.bank.column_table import ColumnTable
from kernelweave.estimators.validation import as_samples, is_precomputed
from kernelweave.views.column_types import column_types
from kernelweave.views.column_values import is_empty, number_matrix, numeric_dtypes, read_column, word
from kernelweave.views.tables import Table, as_table, column_names, is_sparse, take_columns
from kernelweave.views.views import Views

EQUALS_TARGET = "equals the target"
MOST_NAMED = 5
WORDS = {
    "identifier": "{columns} {has} a different value in every row and {isare} taken for the name of the row, which "
    "KernelBank.by_type() leaves out: drop {it}; convert dates and numbers first.",
    "constant": "{columns} {has} one value in all rows and cannot help: drop {it}.",
    EQUALS_TARGET: "{columns} {has} the target, or one value per class: the model may only look it up. "
    "Drop {it}, unless known before the target is.",
}


def note_columns(estimator: Any, X: Any, y: Any) -> None:
    """Warn once per kind of odd column of what an estimator was fitted to, and keep what is odd about them."""
    if is_precomputed(estimator.bank):
        return
    odd = odd_columns(as_samples(X), y, estimator._columns_used())
    if odd:
        estimator.odd_columns_ = tuple(odd)
    for note, sentence in WORDS.items():
        columns = [
            repr(name) if view is None else f"{name!r} of view {view!r}"
            for view, name, own in odd
            if own == note
        ]
        if columns:
            one, more = len(columns) == 1, len(columns) - MOST_NAMED
            shown = ", ".join(columns[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            text = sentence.format(
                columns=f"Column{'' if one else 's'} {shown}",
                has="has" if one else "have",
                isare="is" if one else "are",
                it="it" if one else "them",
            )
            warnings.warn(text, UserWarning, stacklevel=4)


def odd_columns(X: Any, y: Any, used: ColumnTable) -> list[tuple[str | None, str | int, str]]:
    """Return the columns that are odd, with the reason: triples of view, name and note.

    Of arrays only columns that were encoded or left out: a constant among plain numbers without names, such as a
    pixel, is nothing to tell.
    """
    found = [(row.view, row.column, row.note) for row in used if row.note]
    target = np.zeros(0) if y is None else np.asarray(y, dtype=object)
    index = _classes(target) if target.ndim == 1 and target.size > 2 else None
    for view, data in X.items() if isinstance(X, Views) else [(None, X)]:
        if is_sparse(data) or not hasattr(data, "columns") or not hasattr(data, "shape"):
            continue
        table = as_table(data, "X")
        names: tuple[str | int, ...] = column_names(table) or tuple(range(table.shape[1]))
        read = {row.column for row in used if row.view == view and row.encoding != "as it is"}
        others = [j for j, name in enumerate(names) if name not in read]  # of the rest the types are known
        types = column_types(take_columns(table, np.array(others))) if others else ()
        notes = [(names[j], kind.note) for j, kind in zip(others, types, strict=True) if kind.note]
        if target.ndim == 1 and 2 < target.size == table.shape[0]:
            notes += [(names[j], EQUALS_TARGET) for j in _equal_columns(table, target, index)]
        found += [(view, name, note) for name, note in notes]
    return list(dict.fromkeys(found))


def _classes(target: AnyArray) -> AnyArray | None:
    """Return the class of every sample, None for targets most of which differ."""
    words = [word(value) for value in target]
    known = {text: place for place, text in enumerate(dict.fromkeys(words))}
    return np.array([known[text] for text in words]) if 1 < len(known) <= len(words) // 3 else None


def _equal_columns(table: Table, target: AnyArray, index: AnyArray | None) -> list[int]:
    numeric = np.array(numeric_dtypes(table), dtype=bool)
    found: list[int] = []
    plain = np.flatnonzero(numeric)
    if plain.size:
        found += plain[_equal_numbers(number_matrix(take_columns(table, plain), "X"), target, index)].tolist()
    for j in np.flatnonzero(~numeric):
        column = read_column(table, int(j), "X")
        if column.empty.any() or column.form == "set":
            continue
        own = {value: place for place, value in enumerate(dict.fromkeys(column.words))}
        if index is not None and len(own) == index.max() + 1:
            codes = np.array([own[text] for text in column.words])
            if np.array_equal(codes, index):  # both are numbered in order of appearance
                found.append(int(j))
    return sorted(found)


def _equal_numbers(values: AnyArray, target: AnyArray, index: AnyArray | None) -> AnyArray:
    """Return which columns of numbers equal a target of numbers, or have one value per class of their own."""
    if index is None:
        if any(is_empty(value) or not isinstance(value, int | float | np.number) for value in target):
            return np.zeros(values.shape[1], dtype=bool)
        return np.asarray((values == target.astype(np.float64)[:, None]).all(axis=0))
    first = np.array([int(np.argmax(index == c)) for c in range(index.max() + 1)])
    by_class = values[first]
    same = (values[: 4 * first.size] == by_class[index[: 4 * first.size]]).all(axis=0)  # rules out nearly all
    places = np.flatnonzero(same)
    same[places] = (values[:, places] == by_class[index][:, places]).all(axis=0)
    places = np.flatnonzero(same)
    same[places] = [np.unique(by_class[:, j]).size == first.size for j in places]
    return np.asarray(same)
