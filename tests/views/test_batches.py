"""Batches of arrays, memory maps, files and Dask collections: the same samples, however they are kept."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import Views, batches
from kernelweave.errors import DataError


@pytest.fixture
def table(rng):
    return pd.DataFrame(rng.normal(size=(25, 3)), columns=["a", "b", "c"]), rng.integers(0, 2, 25)


def together(parts):
    X, y = zip(*parts, strict=True)
    return np.concatenate([np.asarray(part) for part in X]), np.concatenate(y)


def kept(how, table, folder):
    """Return batches of the table, kept in some way."""
    X, y = table
    whole = X.assign(y=y)
    if how == "array":
        return batches(X.to_numpy(), y, size=10)
    if how == "frame":
        return batches(X, y, size=10)
    if how == "memory map":
        np.save(folder / "X.npy", X.to_numpy())
        np.save(folder / "y.npy", y)
        return batches(folder / "X.npy", str(folder / "y.npy"), size=10)
    if how == "csv":
        whole.to_csv(folder / "t.csv", index=False, float_format="%.17g")
        return batches(folder / "t.csv", "y", size=10)
    if how == "tsv":
        whole.to_csv(folder / "t.tsv", index=False, sep="\t", float_format="%.17g")
        return batches(str(folder / "t.tsv"), "y", size=10)
    if how == "txt":
        whole.to_csv(folder / "t.txt", index=False, sep=";", float_format="%.17g")
        return batches(folder / "t.txt", "y", size=10)
    if how == "parquet":
        whole.to_parquet(folder / "t.parquet", row_group_size=7)
        return batches(folder / "t.parquet", "y", size=10)
    if how == "callable":
        return batches(lambda: ((X.to_numpy()[i : i + 10], y[i : i + 10]) for i in range(0, 25, 10)))
    dask = pytest.importorskip("dask", reason="needs the extra [distributed]")
    if how == "dask array":
        import dask.array

        values = X.to_numpy()
        return batches(dask.array.from_array(values, (9, 3)), dask.array.from_array(y, 9), size=10)
    assert dask
    import dask.dataframe

    frame = dask.dataframe.from_pandas(whole, npartitions=3)
    return batches(frame[["a", "b", "c"]], frame["y"], size=10)


HOW = [
    *("array", "frame", "memory map", "csv", "tsv", "txt", "parquet", "callable"),
    *("dask array", "dask frame"),
]


@pytest.mark.parametrize("how", HOW)
def test_batches_are_the_samples_in_order_as_often_as_wanted(how, table, tmp_path):
    found = kept(how, table, tmp_path)
    for _ in range(2):
        parts = list(found)
        assert all(len(y) <= 10 for _, y in parts)
        X, y = together(parts)
        np.testing.assert_array_equal(X, table[0].to_numpy())
        np.testing.assert_array_equal(y, table[1])


def test_views_and_sparse_tables_come_in_batches_too(rng):
    sparse = pytest.importorskip("scipy.sparse")
    views = Views({"u": rng.normal(size=(25, 2)), "v": rng.normal(size=(25, 4))})
    assert [part.shape[0] for part, _ in batches(views, np.zeros(25), size=10)] == [10, 10, 5]
    parts = [part for part, _ in batches(sparse.eye(25, format="csr"), np.zeros(25), size=10)]
    np.testing.assert_array_equal(sparse.vstack(parts).toarray(), np.eye(25))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_what_sets_cells_apart_is_seen_in_the_rows(separator, tmp_path):
    names = ["time, s", "a|b", "c;d"] if separator == "\t" else ["time s", "a", "c"]
    pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=names).to_csv(tmp_path / "t.csv", index=False, sep=separator)
    ((X, y),) = batches(tmp_path / "t.csv", names[2])
    assert list(X) == names[:2]
    assert y.tolist() == [3, 6]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("time, s;y\n0,5;0\n1,5;1\n", "not clear which of ',' and ';'"),
        ("a,y\n1,2,0\n3,4,1\n", r"Line 2 .* has 3 cells, the header has 2 \(set apart by ','\)"),
        ("a,b,y\n1,0\n2,1\n", "Line 2 .* has 2 cells, the header has 3"),
        ("a,y\n" + 200 * "1,0\n" + "1,2,0\n", "Line 202 .* has 3 cells"),
        ("a,y\n" + 200 * '"1\n2",0\n' + "1\n", "Line 402 .* has 1 cells"),
    ],
)
def test_rows_that_do_not_fit_the_header_are_named(text, match, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=match):
        list(batches(tmp_path / "t.csv", None, size=50))


def test_cells_of_several_lines_stay_whole(tmp_path):
    long = pd.DataFrame({"note": ["one\ntwo, three"] * 120, "y": [0, 1] * 60})
    long.to_csv(tmp_path / "t.csv", index=False)
    parts = list(batches(tmp_path / "t.csv", "y", size=50))
    assert all(len(y) <= 50 for _, y in parts)
    assert pd.concat([X["note"] for X, _ in parts]).tolist() == long["note"].tolist()


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (
            lambda _: batches(np.zeros((3, 1)), size=0),
            ValueError,
            "size must be a whole number of at least 1",
        ),
        (lambda folder: batches(folder / "none.csv", "y"), DataError, "There is no file"),
        (lambda folder: batches(folder / "t.csv", "z"), ValueError, "one of .'a', 'y'.; got 'z'"),
        (lambda folder: batches(folder / "t.csv", np.zeros(2)), ValueError, "name of the column"),
        (lambda folder: batches(folder / "t.xlsx", "y"), DataError, "CSV.*Parquet"),
        (lambda folder: batches(folder / "broken.parquet", "y"), DataError, "broken.parquet"),
        (lambda folder: batches(folder / "broken.npy", np.zeros(2)), DataError, "broken.npy"),
        (lambda _: batches(np.zeros((3, 1)), np.zeros(2)), ValueError, "X has 3 samples but y has 2"),
        (lambda _: batches(7, np.zeros(2)), TypeError, "batches of int"),
    ],
)
def test_what_cannot_be_read_is_named(make, error, match, tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}).to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.xlsx", "broken.parquet", "broken.npy"):
        (tmp_path / name).write_bytes(b"not a table")
    with pytest.raises(error, match=match):
        make(tmp_path)


def test_a_column_of_a_file_reads_alike_in_all_batches(tmp_path):
    codes, labels = ["01"] * 6 + ["01", "X1"] * 3, ["01"] * 6 + ["1", "none"] * 3
    pd.DataFrame({"code": codes, "n": range(12), "y": labels}).to_csv(tmp_path / "t.csv", index=False)
    parts = batches(tmp_path / "t.csv", "y", size=2)
    for _ in range(2):
        read = list(parts)
        assert [cell for X, _ in read for cell in X["code"]] == codes
        assert [cell for X, _ in read for cell in X["n"]] == list(range(12))
        assert [label for _, y in read for label in y] == labels
