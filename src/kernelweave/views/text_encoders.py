"""Text, sets and what transformers of the user make of columns, as numbers for kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils import get_tags

from kernelweave._typing import AnyArray, Vector
from kernelweave.views.column_values import SAID, Column, empty_cells, read_column
from kernelweave.views.encoders import Encoder, Standardiser
from kernelweave.views.tables import Table, as_floats, column_called, is_sparse


@dataclass(frozen=True)
class TextEncoder(Encoder):
    """Free text: tf-idf of its words and of its runs of two to four characters, rows of unit length."""

    vectorisers: tuple[Any, ...] = field(repr=False)
    filled: tuple[int, ...] = field(repr=False)
    mixed: bool = field(default=False, repr=False)

    @classmethod
    def learn(cls, table: Table, what: str) -> TextEncoder:
        texts, empty = _texts(table, what)
        found = []
        for vectoriser in (
            TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True),
        ):
            try:
                found.append(vectoriser.fit(texts))
            except ValueError:  # no words in it, only signs
                continue
        cells = read_column(table, 0, what, "words").values[~empty]
        return cls(tuple(found), (int(empty.sum()),), not all(isinstance(cell, str) for cell in cells))

    def transform(self, table: Table, what: str) -> Any:
        texts, _ = _texts(table, what, mixed=self.mixed)
        return normalize(sparse.hstack([one.transform(texts) for one in self.vectorisers], format="csr"))

    @property
    def words(self) -> str:
        return "tf-idf of words and characters"


def _texts(table: Table, what: str, *, mixed: bool = False) -> tuple[list[str], AnyArray]:
    """Return the texts of a column, and which are empty; ``mixed`` says that it held more than text at fit."""
    column = read_column(table, 0, what, "words")
    if column.form == "set" or (column.form in ("number", "boolean") and not mixed):
        raise ValueError(
            f"{column_called(table, 0, what)} held text when the model was fitted and holds {SAID[column.form]} "
            "now; pass it as it was then."
        )
    return ["" if text is None else text for text in column.words], column.empty


@dataclass(frozen=True)
class SetEncoder(Encoder):
    """Sets and lists: indicators of their members, rows of unit length."""

    members: dict[str, int] = field(repr=False)
    filled: tuple[int, ...] = field(repr=False)

    @classmethod
    def learn(cls, table: Table, what: str) -> SetEncoder:
        column = _sets(table, what)
        known = sorted({member for row in column.members() for member in row})
        return cls({member: place for place, member in enumerate(known)}, (int(column.empty.sum()),))

    def transform(self, table: Table, what: str) -> Any:
        rows = _sets(table, what).members()
        places = [[self.members[member] for member in row if member in self.members] for row in rows]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in places])])
        data = np.concatenate(
            [
                np.full(len(few), 1.0 / np.sqrt(max(len(row), 1)))
                for few, row in zip(places, rows, strict=True)
            ]
        )
        columns = np.array([place for row in places for place in sorted(row)], dtype=np.intp)
        return sparse.csr_matrix((data, columns, starts), shape=(len(rows), max(len(self.members), 1)))

    @property
    def words(self) -> str:
        return "indicators of members, unit rows"


def _sets(table: Table, what: str) -> Column:
    column = read_column(table, 0, what)
    if column.form not in ("set", "empty"):
        raise ValueError(
            f"{column_called(table, 0, what)} held sets when the model was fitted and holds {SAID[column.form]} now; "
            "pass sets or lists."
        )
    return column


@dataclass(frozen=True)
class Transformed(Encoder):
    """Columns as a transformer of the user makes them; what it leaves empty is filled by medians."""

    transformer: Any
    is_text: bool
    fill: Vector = field(repr=False)
    filled: tuple[int, ...] = field(repr=False)

    @classmethod
    def learn(cls, transformer: Any, table: Table, what: str) -> Transformed:
        if not hasattr(transformer, "fit") or not hasattr(transformer, "transform"):
            raise TypeError(
                f"transform= takes a transformer of scikit-learn, 'by_type', or a dict of view to these; got "
                f"{transformer!r}."
            )
        gone = empty_cells(table, np.arange(table.shape[1]), what)
        filled = tuple(gone.sum(axis=0).tolist())
        is_text = int(table.shape[1]) == 1 and _reads_texts(transformer)
        fitted = clone(transformer).fit(_texts(table, what)[0] if is_text else table)
        found = cls(fitted, is_text, np.zeros(0), filled)
        V = found._raw(table, what)
        if is_sparse(V) or not np.isnan(V).any():
            fill = np.zeros(V.shape[1]) if is_sparse(V) else np.median(V, axis=0)
        else:
            fill = np.nan_to_num(Standardiser.learn(V, plain=True).fill)
        return cls(fitted, is_text, fill, filled)

    def transform(self, table: Table, what: str) -> Any:
        V = self._raw(table, what)
        if V.shape[1] != self.fill.size:
            raise ValueError(
                f"{self.transformer!r} made {V.shape[1]} columns of {what} and {self.fill.size} when it was fitted; it "
                "has to make as many of any rows."
            )
        return V if is_sparse(V) or not np.isnan(V).any() else np.where(np.isnan(V), self.fill, V)

    def _raw(self, table: Table, what: str) -> Any:
        made = self.transformer.transform(_texts(table, what)[0] if self.is_text else table)
        if np.ndim(made) == 1:
            made = np.asarray(made)[:, None]
        return as_floats(made, f"what {type(self.transformer).__name__} made of {what}", finite=False)

    @property
    def words(self) -> str:
        return type(self.transformer).__name__


def _reads_texts(transformer: Any) -> bool:
    """Tell whether a transformer wants one text per row, as vectorizers do."""
    if hasattr(transformer, "steps"):
        return _reads_texts(transformer.steps[0][1])
    if hasattr(transformer, "transformer_list"):
        return _reads_texts(transformer.transformer_list[0][1])
    try:
        tags = get_tags(transformer).input_tags
    except Exception:  # no estimator of scikit-learn: it gets the columns
        return False
    return bool(tags.string and not tags.two_d_array)
