"""Pairs, their labels and their privileged features, checked, as points and indices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from kernelweave._typing import AnyArray, Matrix, Vector

SHOWN = 5  # pairs named in a message


@dataclass(frozen=True)
class Pairs:
    """Points as rows and, per pair, the indices of its two points: no differences are stored."""

    points: Matrix
    ends: AnyArray

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def differ(self) -> AnyArray:
        """Which pairs consist of two different points."""
        first, second = self.ends.T
        out = np.empty(len(self), dtype=bool)
        for start in range(0, len(self), 4096):
            span = slice(start, start + 4096)
            out[span] = (self.points[first[span]] != self.points[second[span]]).any(axis=1)
        return out

    def used_points(self, which: AnyArray) -> Matrix:
        """Return the points that belong to one of these pairs."""
        used = np.unique(self.ends[which])
        return self.points if len(used) == len(self.points) else self.points[used]


def read_pairs(pairs: Any, preprocessor: Any, name: str = "pairs") -> Pairs:
    """Return pairs of shape (n, 2, d), or pairs of indices (n, 2) into the rows of the preprocessor."""
    given: AnyArray = np.asarray(pairs)
    if preprocessor is not None and given.ndim == 2:
        return _indexed(given, preprocessor, name)
    if given.ndim != 3 or given.shape[1] != 2:
        hint = (
            "" if preprocessor is not None else ", or (n, 2) indices with preprocessor= the table of points"
        )
        raise ValueError(f"{name} must have shape (n, 2, d){hint}; got an array of shape {given.shape}.")
    checked = check_array(given, allow_nd=True, dtype=np.float64, order="C", input_name=name)
    n, _, d = checked.shape
    if d == 0:
        raise ValueError(f"{name} need at least one feature; got shape {given.shape}.")
    return Pairs(checked.reshape(2 * n, d), np.arange(2 * n, dtype=np.int64).reshape(n, 2))


def read_points(places: AnyArray, preprocessor: Any) -> Matrix:
    """Return rows of the preprocessor by their indices."""
    points = np.asarray(preprocessor)
    if places.size and not np.issubdtype(places.dtype, np.integer):
        raise ValueError(f"X must be a table, or whole numbers as rows of preprocessor; got {places.dtype}.")
    _check_range(places, len(points), "X")
    return points[places.astype(np.intp)]


def _check_range(places: AnyArray, n_points: int, name: str) -> None:
    if places.size and (places.min() < 0 or places.max() >= n_points):
        raise ValueError(
            f"{name} must be indices from 0 to {n_points - 1}, the rows of preprocessor; "
            f"got {places.min()} to {places.max()}."
        )


def _indexed(given: AnyArray, preprocessor: Any, name: str) -> Pairs:
    points = check_array(preprocessor, dtype=np.float64, order="C", input_name="preprocessor")
    if given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(
            f"{name} must have shape (n, 2, d), or (n, 2) whole numbers as indices into preprocessor; "
            f"got shape {given.shape} of {given.dtype}."
        )
    if len(given) == 0:
        raise ValueError(f"{name} are empty; at least one pair is needed.")
    _check_range(given, len(points), name)
    return Pairs(points, np.ascontiguousarray(given, dtype=np.int64))


def read_signs(y: Any, n_pairs: int) -> Vector:
    """Return +1 for similar and -1 for dissimilar pairs."""
    if y is None:
        raise ValueError("Pairs need labels y, +1 for similar and -1 for dissimilar ones; got None.")
    y = column_or_1d(y)
    if len(y) != n_pairs:
        raise ValueError(f"There are {n_pairs} pairs but {len(y)} labels; they must agree.")
    values = np.unique(y)
    if not set(values.tolist()) <= {-1, 1}:
        raise ValueError(
            f"y must be +1 for similar and -1 for dissimilar pairs; got the values {values[:SHOWN].tolist()}."
        )
    return np.asarray(y, dtype=np.float64)


def read_privileged(privileged: Any, pairs: Pairs, indexed: bool) -> tuple[Pairs, AnyArray] | None:
    """Return the privileged points by pair and which pairs have them; None where there is nothing.

    A sample without privileged features is a row of NaN; a pair needs both of its rows.
    """
    if privileged is None:
        return None
    table = check_array(
        privileged,
        allow_nd=True,
        dtype=np.float64,
        order="C",
        ensure_all_finite="allow-nan",
        input_name="privileged",
    )
    n = len(pairs)
    if table.ndim == 2 and indexed and len(table) == len(pairs.points):
        ends = pairs.ends
    elif table.ndim == 3 and table.shape[:2] == (n, 2):
        table = table.reshape(2 * n, -1)
        ends = np.arange(2 * n, dtype=np.int64).reshape(n, 2)
    else:
        wanted = f"({n}, 2, g), one pair of rows per pair"
        if indexed:
            wanted += f", or ({len(pairs.points)}, g), one row per row of preprocessor"
        raise ValueError(f"privileged must have shape {wanted}; got {np.shape(privileged)}.")
    missing = np.isnan(table)
    absent = missing.all(axis=1)
    partly = missing.any(axis=1) & ~absent
    if partly.any():
        where = np.flatnonzero(partly)[:SHOWN].tolist()
        raise ValueError(
            f"A row of privileged is known or NaN throughout, but {int(partly.sum())} rows have some NaN "
            f"(rows {where} of the table of points); fill them in, or make the whole row NaN."
        )
    told = ~absent[ends].any(axis=1)
    if not told.any():
        warnings.warn(
            f"None of the {n} pairs has privileged features (all rows are NaN): this is ITML.", stacklevel=4
        )
        return None
    if absent.any():
        table = np.where(absent[:, None], 0.0, table)
    found = Pairs(np.ascontiguousarray(table), ends)
    useless = told & ~found.differ
    if useless.any():
        warnings.warn(
            f"{int(useless.sum())} pairs have two equal rows of privileged features ({named(useless)}): a "
            "slack of zero is none, so they are treated as pairs without privileged features.",
            stacklevel=4,
        )
        told = told & ~useless
    return (found, told) if told.any() else None


def named(mask: AnyArray) -> str:
    """Return the first places of a mask in words."""
    places = np.flatnonzero(mask)
    shown = ", ".join(map(str, places[:SHOWN].tolist()))
    return f"{'number' if len(places) == 1 else 'numbers'} {shown}{', …' if len(places) > SHOWN else ''}"
