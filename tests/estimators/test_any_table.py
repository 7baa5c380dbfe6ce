"""A table says the same whatever holds it: rows, columns, types of columns and libraries do not matter."""

import warnings
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave import KernelBank, MKLClassifier
from kernelweave.geometry import Uniform
from kernelweave.learners import SquaredHinge

N, N_NEW = 36, 8
KINDS = {
    "number": lambda rng, n: rng.integers(-40, 40, n) / 4.0,
    "count": lambda rng, n: rng.integers(0, 9, n),
    "flag": lambda rng, n: rng.random(n) < 0.5,
    "word": lambda rng, n: rng.choice(["red", "green", "blue"], n),
    "code": lambda rng, n: rng.choice(["01", "02", "10"], n),
    "day": lambda rng, n: pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
}
# Ways to hold a column of each kind in pandas; those with None in them take gaps too.
HELD = {
    "number": ["float64", "float32", "Float64", "double[pyarrow]", "object"],
    "count": ["int64", "int8", "uint16", "Int64", "float64", "int32[pyarrow]", "object"],
    "flag": ["bool", "boolean", "bool[pyarrow]", "object"],
    "word": ["object", "category", "string", "string[pyarrow]"],
    "code": ["object", "string", "string[pyarrow]"],  # declared a category it is one, and no number
    "day": ["datetime64[ns]", "datetime64[s]", "timestamp[us][pyarrow]", "zone", "dates", "text"],
}
WITHOUT_GAPS = ("int64", "int8", "uint16", "bool")


def column(kind, values, gone, held):
    """One column, held in some way."""
    if gone.any() and held in WITHOUT_GAPS:
        held = "object"
    cells = pd.Series(
        [None if empty else value for value, empty in zip(values.tolist(), gone, strict=True)], dtype=object
    )
    if kind != "day":
        return cells if held == "object" else cells.astype(held)
    days = pd.Series(values).mask(gone)
    if held == "zone":
        return days.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    if held == "dates":
        return days.map(lambda day: date(day.year, day.month, day.day), na_action="ignore").astype(object)
    if held == "text":
        return days.dt.strftime("%Y-%m-%d").astype(object)
    return days.astype(held)


def of_polars(frame):
    return pl.DataFrame({name: plain(frame[name]) for name in frame}, strict=False)


def plain(cells):
    """The cells of a column as objects of Python, None where they are empty."""
    return [None if pd.isna(cell) else cell for cell in cells.astype(object)]


def of_arrow(frame):
    return pa.table({name: pa.array(plain(frame[name])) for name in frame})


LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": of_polars,
    "pyarrow": of_arrow,
    "numpy": lambda frame: frame.astype(object).to_numpy(),
    "lists": lambda frame: [plain(row) for _, row in frame.astype(object).iterrows()],
}


@st.composite
def tables(draw):
    """Kinds of columns, their values and gaps in rows to fit and new rows, and targets."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=2, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    share = draw(st.sampled_from([0.0, 0.2]))
    values = [KINDS[kind](rng, N + N_NEW) for kind in kinds]
    gone = [rng.random(N + N_NEW) < share * (kind != "flag") for kind in kinds]
    score = sum(pd.Series(one).rank().to_numpy() for one in values) + rng.normal(0, 5, N + N_NEW)
    y = np.where(score[:N] > np.median(score[:N]), "high", "low")
    return kinds, values, gone, y


def frame(kinds, values, gone, held):
    return pd.DataFrame(
        {f"c{j}": column(*parts) for j, parts in enumerate(zip(kinds, values, gone, held, strict=True))}
    )


def answers(table, new, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a column may happen to be odd
        # Of a strictly convex problem, whose solution is one: learnt weights need not be where columns say the same.
        parts = {"learner": SquaredHinge(), "geometry": Uniform()}
        model = MKLClassifier(KernelBank.by_type(scales=(1.0,)), tol=1e-8, **parts).fit(table, y)
        return model, model.decision_function(new)


@settings(max_examples=60, deadline=None)
@given(tables(), st.data())
def test_a_table_says_the_same_whatever_holds_it(parts, data):
    kinds, values, gone, y = parts
    whole = frame(kinds, values, gone, [HELD[kind][0] for kind in kinds])
    reference, expected = answers(whole.iloc[:N], whole.iloc[N:], y)

    held = [data.draw(st.sampled_from(HELD[kind]), label=f"{kind} held as") for kind in kinds]
    library = data.draw(st.sampled_from(list(LIBRARIES)), label="library")
    order = data.draw(st.permutations(range(len(kinds))), label="columns")
    rows = np.random.default_rng(data.draw(st.integers(0, 99), label="rows")).permutation(N)
    other = frame(kinds, values, gone, held).iloc[:, order]
    to_fit = other.iloc[:N].iloc[rows].reset_index(drop=True)
    wrap = LIBRARIES[library]
    model, found = answers(wrap(to_fit), wrap(other.iloc[N:].reset_index(drop=True)), y[rows])

    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert sorted(row.type for row in model.columns_) == sorted(row.type for row in reference.columns_)
    assert sorted(row.filled for row in model.columns_) == sorted(row.filled for row in reference.columns_)


@settings(max_examples=20, deadline=None)
@given(tables(), st.sampled_from(["pandas", "polars", "pyarrow"]), st.data())
def test_new_rows_may_be_held_otherwise_than_the_rows_of_the_fit(parts, library, data):
    kinds, values, gone, y = parts
    whole = frame(kinds, values, gone, [HELD[kind][0] for kind in kinds])
    model, expected = answers(whole.iloc[:N], whole.iloc[N:], y)
    held = [data.draw(st.sampled_from(HELD[kind]), label=f"{kind} held as") for kind in kinds]
    order = data.draw(st.permutations(range(len(kinds))), label="columns")
    new = frame(kinds, values, gone, held).iloc[N:, order].reset_index(drop=True)
    np.testing.assert_allclose(model.decision_function(LIBRARIES[library](new)), expected, atol=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_no_library_can_say_is_refused_in_one_sentence(library):
    mixed = pd.DataFrame({"a": np.arange(12.0), "b": [{1, 2}, "x"] * 6})
    if library == "pyarrow":
        with pytest.raises(pa.ArrowInvalid):  # such a column cannot be made
            of_arrow(mixed)
        return
    if library == "polars":
        table = pl.DataFrame(
            {"a": mixed["a"].to_numpy(), "b": pl.Series(mixed["b"].tolist(), dtype=pl.Object)}
        )
    else:
        table = LIBRARIES[library](mixed)
    with pytest.raises(
        TypeError, match=r"holds sets in some rows and single values in others; make sets of all"
    ) as error:
        MKLClassifier(KernelBank.by_type()).fit(table, np.arange(12) % 2)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("rows", [np.array, list])
def test_true_and_false_beside_numbers_are_no_numbers(rows):
    cells = [[k / 3.0, k % 2 == 0, k % 5] for k in range(20)]
    table = np.array(cells, dtype=object) if rows is np.array else cells
    model = MKLClassifier(KernelBank.by_type()).fit(table, np.arange(20) % 3 > 0)
    assert [row.type for row in sorted(model.columns_, key=lambda row: row.column)] == [
        "number",
        "boolean",
        "number",
    ]


def test_tables_of_pyarrow_say_which_names_come_twice_and_may_be_views():
    twice = pa.Table.from_arrays([pa.array([1.0, 2.0, 3.0])] * 3, names=["a", "b", "b"])
    with pytest.raises(ValueError, match="several columns named 'b'"):
        MKLClassifier().fit(twice, [0, 1, 0])
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    table = pa.table({name: X[:, j] for j, name in enumerate("abc")})
    expected = MKLClassifier().fit({"u": X, "v": X[:, :2]}, y).decision_function({"u": X, "v": X[:, :2]})
    views = {"u": table, "v": table.select(["a", "b"])}
    np.testing.assert_allclose(MKLClassifier().fit(views, y).decision_function(views), expected, atol=1e-9)


def test_what_is_no_table_says_what_would_be_one():
    with pytest.raises(TypeError, match=r"list of dicts; pass a table: pandas.DataFrame\(X\)"):
        MKLClassifier().fit([{"a": 1.0}, {"a": 2.0}], [0, 1])
    with pytest.raises(
        ValueError, match=r"'age' is one column of numbers; pass one table, pandas.DataFrame\(X\)"
    ):
        MKLClassifier().fit({"age": [1.0, 2.0]}, [0, 1])
