"""What columns hold, whatever library holds them."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from kernelweave.views.column_types import are_counts, column_types
from kernelweave.views.column_values import number_matrix, read_column

N = 30
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(N)]
STAMPS = [dt.datetime(2024, 1, 1, 12) + dt.timedelta(days=k) for k in range(N)]
WORDS = ["red", "green", "blue"] * 10
NOTES = [f"the patient number {k} has a cough and was sent home" for k in range(N)]


def kinds(table):
    return [(kind.name, kind.note) for kind in column_types(table)]


def pandas_column(values, dtype=None):
    return pd.DataFrame({"a": pd.Series(values, dtype=dtype)})


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (pandas_column(np.arange(N) % 7 * 1.5), "number"),
        (pandas_column([1, None, 3], "Int64"), "number"),
        (pandas_column([1.5, None, 3], "double[pyarrow]"), "number"),
        (pandas_column([Decimal("1.5"), Decimal("2.5"), None]), "number"),
        (pandas_column(["1.5", "2", "-3e4"]), "number"),
        (pandas_column([True, False, None], "boolean"), "boolean"),
        (pandas_column([True, False, None], "bool[pyarrow]"), "boolean"),
        (pandas_column([True, False, None], object), "boolean"),
        (pandas_column(WORDS), "category"),
        (pandas_column(WORDS, "category"), "category"),
        (pandas_column(WORDS, "string[pyarrow]"), "category"),
        (pandas_column([1, "1", 2.5, None]), "category"),
        (pandas_column(pd.Categorical(["lo", "hi", "lo"], ["lo", "hi"], ordered=True)), "ordered"),
        (pandas_column(STAMPS), "date"),
        (pandas_column(pd.to_datetime(STAMPS).tz_localize("Asia/Tokyo")), "date"),
        (pandas_column(STAMPS, "timestamp[us][pyarrow]"), "date"),
        (pandas_column(DAYS), "date"),
        (pandas_column([str(day) for day in DAYS]), "date"),
        (pandas_column([f"{day}T10:00:00+02:00" for day in DAYS]), "date"),
        (pandas_column(pd.period_range("2024-01", periods=3, freq="M")), "date"),
        (pandas_column(pd.to_timedelta([1, 2, 3], unit="h")), "number"),
        (pandas_column(NOTES), "text"),
        (pandas_column([{"a"}, {"a", "b"}, None]), "set"),
        (pandas_column([["a"], ["a", "b"], ["c"]]), "set"),
        (pl.DataFrame({"a": [1, None, 3]}), "number"),
        (pl.DataFrame({"a": [True, False, None]}), "boolean"),
        (pl.DataFrame({"a": WORDS}), "category"),
        (pl.DataFrame({"a": pl.Series(WORDS, dtype=pl.Categorical)}), "category"),
        (pl.DataFrame({"a": pl.Series(WORDS, dtype=pl.Enum(["red", "green", "blue"]))}), "ordered"),
        (pl.DataFrame({"a": STAMPS}).with_columns(pl.col("a").dt.replace_time_zone("UTC")), "date"),
        (pl.DataFrame({"a": DAYS}), "date"),
        (pl.DataFrame({"a": [dt.timedelta(hours=1), None]}), "number"),
        (pl.DataFrame({"a": NOTES}), "text"),
        (pl.DataFrame({"a": [["x"], ["x", "y"]]}), "set"),
        (np.array(STAMPS, dtype="datetime64[s]")[:, None], "date"),
        (np.array(WORDS)[:, None], "category"),
        (np.array([b"a", b"b", b"a"])[:, None], "category"),
        (np.array([[1.5], [None], [2]], dtype=object), "number"),
        (sparse.csr_matrix(np.eye(4)[:, :1]), "number"),
    ],
)
def test_a_column_is_called_by_what_it_holds(table, expected):
    assert [kind.name for kind in column_types(table)] == [expected]


@pytest.mark.parametrize(
    ("values", "name", "note"),
    [
        ([f"P{k:03d}" for k in range(N)], "a", "identifier"),
        (["Ann", "Bob", "Eve"], "patient_id", "identifier"),
        (list(range(100, 100 + N)), "patientId", "identifier"),
        ([2**60 + k for k in range(N)], "id", "identifier"),
        (list(range(N)), "Unnamed: 0", "identifier"),
        (list(range(N)), "age", ""),
        ([1.5 * k for k in range(N)], "id", ""),
        ([k // 2 for k in range(N)], "id", ""),
        (["x"] * N, "a", "constant"),
        ([3.0] * N, "a", "constant"),
        ([None] * N, "a", "constant"),
        ([3.0, None] * 15, "a", "constant"),
        ([2**60, 2**60 + 1] * 15, "a", ""),
        (["ACDEF", "GHIKL", "MNPQR"], "peptide", ""),
    ],
)
def test_columns_that_teach_nothing_are_noted(values, name, note):
    for table in (pd.DataFrame({name: values}), pl.DataFrame({name: values})):
        assert column_types(table)[0].note == note


def test_levels_are_low_to_high():
    table = pandas_column(pd.Categorical(["b", "a"], ["c", "b", "a"], ordered=True))
    assert column_types(table)[0].levels == ("c", "b", "a")


def test_few_values_that_repeat_are_categories_however_long():
    assert kinds(pandas_column([f"{text} was seen by the nurse" for text in WORDS])) == [("category", "")]


def test_many_whole_numbers_most_of_them_zero_are_counts(rng):
    counts = rng.poisson(0.1, size=(20, 100))
    assert are_counts(counts)
    assert are_counts(sparse.csr_matrix(counts))
    assert are_counts(pd.DataFrame(counts))
    assert not are_counts(counts[:, :50])
    assert not are_counts(counts - 1)
    assert not are_counts(counts * 0.5)
    assert not are_counts(counts + 1)


def test_empty_cells_are_found_in_every_library():
    values = ["a", None, "", "  ", "b"]
    for table in (
        pandas_column(values),
        pl.DataFrame({"a": values}),
        np.array(values, dtype=object)[:, None],
    ):
        assert read_column(table, 0, "X").empty.tolist() == [False, True, True, True, False]
    for gap in (np.nan, pd.NA, pd.NaT, None):
        column = read_column(np.array([["a"], [gap]], dtype=object), 0, "X")
        assert column.empty.tolist() == [False, True]


def test_words_are_the_same_whatever_number_type_they_come_from():
    columns = [
        read_column(np.array(v, dtype=object)[:, None], 0, "X") for v in (["1", "x"], [1, "x"], [1.0, "x"])
    ]
    assert [column.words.tolist() for column in columns] == [["1", "x"]] * 3


def test_instants_are_those_of_the_world_clock():
    berlin = pandas_column(pd.to_datetime(["2024-06-01 12:00"]).tz_localize("Europe/Berlin"))
    tables = [
        berlin,
        pandas_column(["2024-06-01T12:00:00+02:00"]),
        pandas_column(pd.to_datetime(["2024-06-01 10:00"])),
        pl.from_pandas(berlin),
        np.array([["2024-06-01T10:00"]], dtype="datetime64[m]"),
    ]
    assert {float(read_column(table, 0, "X").numbers()[0]) for table in tables} == {1717236000e6}


def test_whole_numbers_beyond_float64_are_told_apart_from_an_origin():
    table = pandas_column([2**60 + 1, 2**60 + 4])
    assert number_matrix(table, "X", [2**60])[:, 0].tolist() == [1.0, 4.0]
