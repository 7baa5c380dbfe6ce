"""Every mistake of the user gives one sentence and exit code 2, and leaves no file behind."""

import json
import os
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.cli.typed import frame, run

from kernelweave.io.model_file import KEYS, LABEL

pytest.importorskip("skops")
GOOD = frame()


def csv(content, name="t.csv"):
    def write(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return [folder / name]

    return write


def table(change=lambda t: t, name="t.csv"):
    return lambda folder: csv(change(GOOD.copy()).to_csv(index=False), name)(folder)


def npz(**arrays):
    def write(folder):
        np.savez(folder / "t.npz", **arrays)
        return [folder / "t.npz"]

    return write


def pair(first, second):
    def write(folder):
        first.to_csv(folder / "one.csv", index=False)
        second.to_csv(folder / "two.csv", index=False)
        return [folder / "one.csv", folder / "two.csv"]

    return write


TEXT = GOOD.to_csv(index=False)
COMMAS = GOOD.to_csv(index=False, sep=";", decimal=",")
LEFT, RIGHT = GOOD[["key", "a1", "label"]], GOOD[["key", "b1"]]
TWICE = pd.concat([RIGHT, RIGHT.iloc[:1]])
# What the files are, what else is typed, and a word of the sentence that comes back.
BROKEN = {
    "no file": (lambda f: [f / "none.csv"], [], "There is no file"),
    "a folder": (lambda f: [f], [], "folder"),
    "another kind of file": (csv("x", "t.xlsx"), [], "none of the files"),
    "an empty file": (csv(""), [], "empty"),
    "a header alone": (csv("a1,label\n"), [], "no rows"),
    "latin-1": (csv("a1,label\n1,caf\xe9\n".encode("latin-1")), [], "UTF-8"),
    "utf-16": (csv(TEXT.encode("utf-16")), [], "UTF-8"),
    "lines that end in CR": (csv(TEXT.replace("\n", "\r")), [], "end in CR alone"),
    "binary": (csv(b"\x00\x01\x02" * 50), [], "text file"),
    "a ragged row": (csv(TEXT + "1,2\n"), [], "Line 62"),
    "a row too long": (csv(TEXT + "1,2,3,4,5,yes,9,9\n"), [], "8 cells"),
    "a column without name": (csv(",label\n1,yes\n"), [], "no name"),
    "two columns of one name": (csv("a1,a1,label\n1,2,yes\n"), [], "several columns"),
    "an open quote": (csv('a1,label\n1,"yes\n'), [], "not a table in CSV"),
    "no such target": (table(), ["--target", "lable"], "did you mean 'label'"),
    "a constant target": (table(lambda t: t.assign(label="same")), [], "always same"),
    "empty targets": (table(lambda t: t.assign(label=t.label.where(t.a1 > 0))), [], "empty cells"),
    "a class of one": (table(lambda t: t.assign(label=["odd", *t.label[1:]])), [], "one row only"),
    "a target of ids": (table(), ["--target", "key", "--task", "classification"], "60 classes"),
    "regression on text": (table(), ["--task", "regression"], "is text"),
    "nothing but empty cells": (table(lambda t: t[["label"]].assign(b1=np.nan)), [], "no value in any row"),
    "infinity": (table(lambda t: t.assign(b1=np.inf)), [], "infinite"),
    "a column too large": (table(lambda t: t.assign(b1=t.b1 * 1e160)), [], "'b1' has values as large as"),
    "decimal commas": (csv(COMMAS), ["--id", "key"], "write 1.5 for 1,5"),
    "decimal commas in a view": (csv(COMMAS), ["--view", "v=a1"], "write 1.5 for 1,5"),
    "thousands": (table(lambda t: t.assign(b1=[f"{137 * k:,}" for k in range(60)])), [], "1500 for 1,500"),
    "millions": (
        table(lambda t: t.assign(b1=[f"{13**k:,}" for k in range(60)])),
        [],
        "'b1' has commas inside its numbers ('2,197')",
    ),
    "points and commas": (
        table(lambda t: t.assign(b1=[f"{k}.234,5" for k in range(60)])),
        [],
        "has commas inside its numbers ('0.234,5')",
    ),
    "a target of thousands": (
        table(lambda t: t.assign(label=[f"{1370 * k:,}" for k in range(60)])),
        [],
        "The target 'label' has commas",
    ),
    "names of rows only": (
        table(lambda t: t[["key", "label"]].assign(key="k" + t.key)),
        [],
        "number the rows: 'key'",
    ),
    "the target alone": (table(lambda t: t[["label"]]), [], "no column beside the target"),
    "a name with two separators": (csv("a;b,label\n1;2,yes\n1;3,no\n"), [], "not clear which of ',' and ';'"),
    "a header with another separator": (
        csv("a|x,b,label\n1,2,yes\n1|1,2\n"),
        [],
        "Line 3 of t.csv has 2 cells, the header has 3 (set apart by ',')",
    ),
    "an order without levels": (table(), ["--order", "a1"], "NAME=LOW,...,HIGH"),
    "an order of an unknown column": (table(), ["--order", "z=low,high"], "no column 'z'"),
    "an order without a level": (
        table(lambda t: t.assign(b1="low")),
        ["--order", "b1=small,large"],
        "'b1' holds 'low', which --order does not name",
    ),
    "a view without columns": (table(), ["--view", "v"], "NAME=COLUMNS"),
    "a view of unknown columns": (table(), ["--view", "v=zz*"], "no such column"),
    "a view with the target": (table(), ["--view", "v=a1,label"], "is the target"),
    "a backward range": (table(), ["--view", "v=b3:a1"], "backwards"),
    "two views of one name": (table(), ["--view", "v=a1", "--view", "v=a2"], "same name"),
    "no such method": (table(), ["--method", "simple_mlk"], "did you mean 'simple_mkl'"),
    "no such bank": (table(), ["--bank", "gauss"], "no bank"),
    "no such task": (table(), ["--task", "guess"], "--task is"),
    "a cost of nothing": (table(), ["--cost", "0"], "above 0"),
    "a cost that is none": (table(), ["--cost", "nan"], "above 0"),
    "no such id": (table(), ["--id", "kye"], "no id column"),
    "an id twice": (pair(LEFT, TWICE), ["--id", "key"], "2 times"),
    "an empty id": (
        pair(LEFT, RIGHT.assign(key=RIGHT.key.where(RIGHT.b1 > 0))),
        ["--id", "key"],
        "every row",
    ),
    "no rows in common": (pair(LEFT, RIGHT.assign(key="z" + RIGHT.key)), ["--id", "key"], "shares no key"),
    "no id to guess": (
        pair(LEFT, RIGHT.rename(columns={"key": "who"})),
        [],
        "No column matches the rows of one, two",
    ),
    "an id that repeats": (pair(LEFT, TWICE), [], "'key' is empty or repeated in two"),
    "several ids to guess": (
        pair(LEFT.assign(mrn=range(60)), RIGHT.assign(mrn=range(60))),
        [],
        "columns 'key', 'mrn' could match the rows of one, two; choose one with --id",
    ),
    "views of several files": (pair(LEFT, RIGHT), ["--id", "key", "--view", "v=a1"], "one file only"),
    "the target in two files": (pair(LEFT, LEFT), ["--id", "key"], "several files"),
    "not a parquet file": (csv("hello", "t.parquet"), [], "not a Parquet file"),
    "not an npz file": (csv("hello", "t.npz"), [], "not an NPZ file"),
    "pickled objects": (npz(label=np.array([{}, 1], dtype=object)), [], "not an NPZ file"),
    "arrays of different length": (npz(label=np.zeros(3), v=np.zeros((4, 2))), [], "3 and 4 rows"),
    "a cube": (npz(label=np.zeros(3), v=np.zeros((3, 2, 2))), [], "3 dimensions"),
    "no folder for the model": (table(), ["--model", "none/m.kw"], "no folder"),
    "a folder as the model": (table(), ["--model", "."], "is a folder"),
    "no folder for the report": (table(), ["--report", "none/r.html"], "no folder"),
    "a folder as the report": (table(), ["--report", "."], "is a folder"),
    "the data as the report": (table(), ["--report", "t.csv"], "one of the files to read"),
    "the model as the report": (table(), ["--report", "m.kw"], "one of the files to read"),
    "the data as the model": (table(), ["--model", "t.csv"], "one of the files to read"),
}


def is_one_sentence(result, words):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.exception is None or isinstance(result.exception, SystemExit)
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("kernelweave: ")
    assert words in line


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_fit_is_one_sentence_and_writes_nothing(kind, tmp_path, monkeypatch):
    write, words, sentence = BROKEN[kind]
    monkeypatch.chdir(tmp_path)
    files = [file.relative_to(tmp_path) for file in write(tmp_path)]
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    options = {"--target": "label", "--model": "m.kw"}
    given_twice = [w for pair in options.items() if pair[0] not in words for w in pair]
    is_one_sentence(run("fit", *files, *words, *given_twice), sentence)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.fixture
def fitted(tmp_path):
    GOOD.to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "--target", "label", "--view", "a=a1,a2", "--model", tmp_path / "m.kw")
    return tmp_path


def test_a_full_disk_is_one_sentence(fitted, monkeypatch):
    before = (fitted / "m.kw").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    words = [fitted / "t.csv", "--target", "label", "--model", fitted / "m.kw"]
    is_one_sentence(run("fit", *words), "No space left on device")
    is_one_sentence(run("predict", fitted / "m.kw", fitted / "t.csv", "--out", fitted / "p.csv"), "No space")
    assert (fitted / "m.kw").read_bytes() == before
    assert sorted(p.name for p in fitted.iterdir()) == ["m.kw", "t.csv"]


def test_another_file_is_not_replaced_by_a_report(tmp_path):
    GOOD.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "letter.html").write_text("<p>Dear all</p>")
    words = [tmp_path / "t.csv", "--target", "label", "--model", tmp_path / "m.kw"]
    is_one_sentence(run("fit", *words, "--report", tmp_path / "letter.html"), "is not a report")
    assert (tmp_path / "letter.html").read_text() == "<p>Dear all</p>"


def test_a_folder_that_may_not_be_written_to_is_one_sentence(fitted, monkeypatch):
    before = {p.name: p.read_bytes() for p in fitted.iterdir()}
    is_open = os.open

    def forbidden(path, flags, *rest, **named):
        if flags & os.O_CREAT and Path(path).parent == fitted:
            raise PermissionError(13, "Permission denied", str(path))
        return is_open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", forbidden)
    words = [fitted / "t.csv", "--target", "label", "--view", "a=a1,a2"]
    for model in ("new.kw", "m.kw"):
        sentence = f"{fitted / model} cannot be written: Permission denied."
        is_one_sentence(run("fit", *words, "--model", fitted / model), sentence)
    done = run("predict", fitted / "m.kw", fitted / "t.csv", "--out", fitted / "p.csv")
    is_one_sentence(done, f"{fitted / 'p.csv'} cannot be written: Permission denied.")
    assert {p.name: p.read_bytes() for p in fitted.iterdir()} == before


def test_broken_models_are_one_sentence(fitted):
    data = fitted / "t.csv"
    content = (fitted / "m.kw").read_bytes()
    (fitted / "half.kw").write_bytes(content[: len(content) // 2])
    for command in (["predict"], ["inspect"]):
        rest = [data] if command == ["predict"] else []
        is_one_sentence(run(*command, fitted / "none.kw", *rest), "no model file")
        is_one_sentence(run(*command, fitted / "half.kw", *rest), "truncated or damaged")
        is_one_sentence(run(*command, data, *rest), "not a model file")


def relabelled(file, out, change):
    """Write a model file anew with another label."""
    with ZipFile(file) as old, ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, json.dumps(change(json.loads(content))) if name == LABEL else content)
    return out


@pytest.mark.parametrize("key", KEYS)
def test_a_label_that_lacks_something_is_one_sentence(fitted, key):
    def less(label):
        return {name: value for name, value in label.items() if name != key}

    model = relabelled(fitted / "m.kw", fitted / "less.kw", less)
    is_one_sentence(run("inspect", model), f"the label says {key} None")
    is_one_sentence(run("predict", model, fitted / "t.csv"), f"the label says {key} None")


def test_notes_that_are_not_those_of_fit_are_not_taken_for_them(fitted):
    for notes in ({"views": 3}, {"command": "kernelweave fit", "views": {}}):
        model = relabelled(fitted / "m.kw", fitted / "other.kw", lambda old, n=notes: old | {"notes": n})
        is_one_sentence(run("predict", model, fitted / "t.csv"), "does not say which columns it needs")
        assert run("inspect", model).exit_code == 0


def test_data_that_do_not_fit_the_model_are_one_sentence(fitted):
    GOOD.drop(columns="a2").to_csv(fitted / "less.csv", index=False)
    GOOD.assign(a2="x").to_csv(fitted / "text.csv", index=False)
    model = fitted / "m.kw"
    is_one_sentence(
        run("predict", model, fitted / "less.csv"), "lack 1 of the 2 columns the model needs: 'a2'"
    )
    is_one_sentence(run("predict", model, fitted / "text.csv"), "'a2' of X held numbers")
    is_one_sentence(run("predict", model, fitted / "t.csv", fitted / "less.csv"), "fitted on 1 file")
    is_one_sentence(run("predict", model, fitted / "t.csv", "--out", model), "one of the files to read")


NUMBERS = st.floats(-5, 5) | st.integers(-3, 3)
CELLS = NUMBERS | st.sampled_from(["", "x", "nan", "inf", "1e400", "é", '"', "1,2"])
# Two rows of each class, so that what is drawn beside them can be learnt.
FOUR = [[0, 1, "x"], [1, 0, "é"], [2, 3, "é"], [3, 1, "x"]]
WILD = st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=12)
LABELLED = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from("xé")), max_size=8).map(lambda r: FOUR + r)
MEASURED = st.lists(st.tuples(NUMBERS, NUMBERS, st.floats(-5, 5)), min_size=4, max_size=12)
SPOILT = st.tuples(LABELLED, CELLS).map(lambda pair: [*pair[0], [pair[1], 1, "x"]])


def test_any_table_gives_a_model_or_one_sentence(tmp_path_factory):
    reached = []

    @example(rows=[[0.0, 0.0, 0.5]], strict=False)
    @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(rows=st.one_of(SPOILT, WILD, LABELLED, MEASURED, WILD), strict=st.booleans())
    def fit_any(rows, strict):
        folder = tmp_path_factory.mktemp("any")
        lines = [",".join(str(cell) for cell in row) for row in rows]
        (folder / "t.csv").write_text("\n".join(["a,b,label", *lines]), encoding="utf-8")
        words = ["--view", "v=a,b"] if strict else []
        result = run("fit", folder / "t.csv", "--target", "label", "--model", folder / "m.kw", *words)
        reached.append(result.exit_code == 0)
        if result.exit_code == 0:
            assert run("inspect", folder / "m.kw").exit_code == 0
        else:
            is_one_sentence(result, "")
            assert [p.name for p in folder.iterdir()] == ["t.csv"]

    fit_any()
    assert 0.2 < sum(reached) / len(reached) < 0.9  # both ends of the sentence are met often
