"""Tables that are never held: fits on landmarks, predictions and draws, some rows at a time."""

import json
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from tests.cli.typed import frame, run

from kernelweave import KernelBank, Landmarks, MKLClassifier, batches, load
from kernelweave.cli import commands, files, prepare

pytest.importorskip("skops")
COLUMNS = ["a1", "a2", "b1", "b2", "b3"]


def words(folder, *more, suffix="csv"):
    file = folder / f"t.{suffix}"
    return ["fit", file, "--target", "label", "--id", "key", "--model", folder / "m.kw", *more]


def write(table, file):
    table.to_csv(file, index=False) if file.suffix == ".csv" else table.to_parquet(file)


def sentence_of(done):
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch):
    at_a_time(monkeypatch, 30)


def at_a_time(monkeypatch, size):
    for module in (files, prepare):
        monkeypatch.setattr(module, "ROWS_AT_A_TIME", size)


@contextmanager
def files_no_larger_than(n_bytes):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_fit_that_holds_no_table_is_that_of_the_whole_table(tmp_path, monkeypatch, suffix):
    table = frame(200)
    write(table, tmp_path / f"t.{suffix}")
    monkeypatch.setattr(prepare, "prepare_held", None)
    done = run(*words(tmp_path, "--landmarks", "30", "--bank", "by_type", "--json", suffix=suffix))
    assert done.exit_code == 0, done.output
    X = table[COLUMNS]
    exact = MKLClassifier(KernelBank.by_type(), features=Landmarks(30), random_state=0)
    exact.fit(batches(X, table["label"], size=100))
    found = load(tmp_path / "m.kw")
    np.testing.assert_allclose(found.kernel_weights_, exact.kernel_weights_, atol=1e-4)
    np.testing.assert_allclose(found.decision_function(X), exact.decision_function(X), atol=1e-4)
    summary = json.loads(done.stdout)
    assert summary["score"] == pytest.approx(exact.score(X, table["label"]))
    assert summary["rows"] == 200
    assert summary["classes"] == {str(k): int(n) for k, n in table["label"].value_counts().items()}


def test_numbers_are_learnt_as_numbers(tmp_path):
    table = frame(150)
    write(table.assign(label=table["a1"] + 0.1 * table["b1"]), tmp_path / "t.csv")
    summary = json.loads(run(*words(tmp_path, "--landmarks", "50", "--json")).stdout)
    assert summary["task"] == "regression"
    assert summary["score"] > 0.9


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_are_the_same_however_many_rows_are_read_at_a_time(tmp_path, monkeypatch, suffix):
    write(frame(100), tmp_path / f"t.{suffix}")
    run(*words(tmp_path, "--landmarks", "20", suffix=suffix))
    found = {}
    for size in (37, 1000):
        at_a_time(monkeypatch, size)
        done = run("predict", tmp_path / "m.kw", tmp_path / f"t.{suffix}", "--out", tmp_path / "p.csv")
        assert "100 predictions" in done.output
        found[size] = pd.read_csv(tmp_path / "p.csv", dtype={"key": str})
    assert found[37]["key"].tolist() == frame(100)["key"].tolist()
    pd.testing.assert_frame_equal(found[37], found[1000], rtol=1e-9)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("b2", np.inf, "'b2' (rows 61 to 90 of {}) has infinite values"),
        ("key", "003", "Rows 4 and 71 of {} have the same id"),
        ("label", None, "The target 'label' has 1 empty cells"),
    ],
)
def test_what_is_wrong_in_the_middle_of_a_file_is_said_with_its_place(tmp_path, column, value, sentence):
    placed = sentence.format(tmp_path / "t.csv")
    good, bad = frame(100), frame(100).astype({column: object})
    bad.loc[70, column] = value
    write(bad, tmp_path / "t.csv")
    assert placed in sentence_of(run(*words(tmp_path, "--landmarks", "9")))
    assert not (tmp_path / "m.kw").exists()
    if column == "label":
        return
    if column == "b2":
        placed = f"Rows 61 to 90 of {tmp_path / 't.csv'}: Column 'b2' of X contains inf in row 10"
    write(good, tmp_path / "t.csv")
    run(*words(tmp_path, "--landmarks", "9"))
    write(bad, tmp_path / "t.csv")
    (tmp_path / "p.csv").write_text("prediction\nyes\n")
    done = run("predict", tmp_path / "m.kw", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert placed in sentence_of(done)
    assert (tmp_path / "p.csv").read_text() == "prediction\nyes\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.kw", "p.csv", "t.csv"]


def test_a_word_among_numbers_is_noted_at_fit_and_refused_at_prediction(tmp_path):
    good, bad = frame(100), frame(100).astype({"b2": object})
    bad.loc[70, "b2"] = "much"
    write(bad, tmp_path / "bad.csv")
    write(good, tmp_path / "t.csv")
    noted = "Column 'b2' is taken for words because of 'much'"
    for more in (["--landmarks", "9"], []):
        done = run("fit", tmp_path / "bad.csv", *words(tmp_path, *more, "--json")[2:])
        assert any(note.startswith(noted) for note in json.loads(done.stdout)["notes"])
        assert run(*words(tmp_path, *more)).exit_code == 0
        line = sentence_of(run("predict", tmp_path / "m.kw", tmp_path / "bad.csv"))
        assert "Column 'b2' of X held numbers when the model was fitted and holds words now ('much'" in line
        assert f"Rows 61 to 90 of {tmp_path / 'bad.csv'}: " in line


def test_gaps_and_words_are_learnt_from_in_parts(tmp_path):
    table = frame(200)
    table["kind"] = np.where(table["a1"] > 0, "plus", "minus")
    table.loc[::9, ["a2", "kind"]] = None
    write(table, tmp_path / "t.csv")
    done = run(*words(tmp_path, "--landmarks", "30", "--json"))
    assert done.exit_code == 0, done.output
    made = {row["column"]: (row["type"], row["filled"]) for row in json.loads(done.stdout)["columns"]}
    assert made["a2"] == ("number", 23)
    assert made["kind"] == ("category", 23)
    write(table.assign(kind="neither").drop(columns="label"), tmp_path / "new.csv")
    done = run("predict", tmp_path / "m.kw", tmp_path / "new.csv")
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 201


@pytest.mark.parametrize("options", [[], ["--landmarks", "30"]], ids=["held", "in parts"])
def test_a_category_that_reads_as_numbers_at_first_is_one_category(tmp_path, options):
    table = frame(120)
    plus = table["a1"].to_numpy() > 0
    table["code"] = np.where(plus, "01", np.where(table["a2"] > 0, "02", "03"))
    table["flag"] = np.where(plus, "TRUE", "FALSE")
    table.loc[100:, ["code", "flag"]] = "X1", "unknown"
    table["gone"] = [None] * 60 + [True] * 30 + [None, False] * 15  # no word in any part
    write(table.drop(columns=["a1", "a2", "b1", "b2", "b3"]), tmp_path / "t.csv")
    done = run(*words(tmp_path, *options))
    assert done.exit_code == 0, done.output
    types = {row.column: row.type for row in load(tmp_path / "m.kw").columns_}
    assert types == {"code": "category", "flag": "category", "gone": "boolean"}
    decisions = []
    for cells in (["01", "TRUE", True], ["1", "True", True], ["never", "seen", True]):
        pd.DataFrame([["k", *cells]], columns=["key", "code", "flag", "gone"]).to_csv(
            tmp_path / "new.csv", index=False
        )
        done = run("predict", tmp_path / "m.kw", tmp_path / "new.csv")
        assert done.exit_code == 0, done.output
        decisions.append(float(done.stdout.splitlines()[1].split(",")[-1]))
    assert decisions[1] == decisions[2] != decisions[0]  # 1 and True are no values of the file


def test_a_target_in_two_ways_of_writing_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelweave.cli.columns.FEW", 10)
    numbers = np.where(np.arange(100) < 90, np.arange(100) + 0.5, 7)
    write(frame(100).assign(label=[*map(str, numbers[:90]), *["many"] * 10]), tmp_path / "t.csv")
    assert "numbers in some rows and text" in sentence_of(run(*words(tmp_path, "--landmarks", "9")))


@pytest.mark.parametrize("codes", [["007", "8"], ["7", "eight"]])
def test_classes_that_look_like_numbers_at_first_are_kept_as_they_are_written(tmp_path, codes):
    labels = ["7" if codes[0] == "7" else "007"] * 40 + [codes[1]] * 60
    write(frame(100).assign(label=labels), tmp_path / "t.csv")
    summary = json.loads(run(*words(tmp_path, "--landmarks", "9", "--json")).stdout)
    assert summary["classes"] == {codes[0]: 40, codes[1]: 60}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_too_many_rows_are_refused_after_the_first(tmp_path, monkeypatch, suffix):
    write(frame(400), tmp_path / f"t.{suffix}")
    monkeypatch.setattr(prepare, "budget", lambda _: 1000)
    shares = []
    monkeypatch.setattr(commands, "reading_bar", lambda *_: watched(shares))
    line = sentence_of(run(*words(tmp_path, suffix=suffix)))
    assert "rows are too many for exact kernels" in line
    assert "may be used" in line
    assert "--landmarks 300" in line
    assert len(shares) == 1
    assert shares[0] < 0.2


@contextmanager
def watched(shares):
    yield lambda *seen: shares.append(seen[2])


def test_probabilities_hold_the_table_up_to_some_rows(tmp_path, monkeypatch):
    write(frame(60), tmp_path / "t.csv")
    more = [
        "--landmarks",
        "10",
        "--probability",
    ]
    done = run(*words(tmp_path, *more))
    assert done.exit_code == 0, done.output
    done = run("predict", tmp_path / "m.kw", tmp_path / "t.csv")
    assert "probability yes" in done.stdout
    monkeypatch.setattr(prepare, "HELD_ROWS", 50)
    assert "too many for --probability" in sentence_of(run(*words(tmp_path, *more)))
    assert run(*words(tmp_path, "--landmarks", "10")).exit_code == 0
    line = sentence_of(run(*words(tmp_path, "--landmarks", "10", "--report", tmp_path / "r.html")))
    assert "leave --report or --landmarks out" in line


def test_a_model_that_cannot_be_written_after_the_fit_is_kept(tmp_path, monkeypatch):
    write(frame(), tmp_path / "t.csv")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    saved = commands.save

    def full(model, path, **named):
        if path == tmp_path / "m.kw":
            raise OSError(28, f"{path} cannot be written: No space left on device.")
        saved(model, path, **named)

    monkeypatch.setattr(commands, "save", full)
    line = sentence_of(run(*words(tmp_path)))
    assert "No space left on device" in line
    kept = line.rpartition("The model is kept as ")[2].removesuffix(".")
    assert load(kept).predict(frame()[COLUMNS]).shape == (60,)


def test_a_disk_that_fills_up_keeps_the_predictions_that_were_there(tmp_path, monkeypatch):
    at_a_time(monkeypatch, 200)
    write(frame(1000), tmp_path / "t.csv")
    run(*words(tmp_path, "--landmarks", "9"))
    (tmp_path / "p.csv").write_text("prediction\nyes\n")
    with files_no_larger_than(20_000):
        done = run("predict", tmp_path / "m.kw", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
        fitted = run(*words(tmp_path, "--landmarks", "9"))
    assert "p.csv cannot be written: File too large." in sentence_of(done)
    assert (tmp_path / "p.csv").read_text() == "prediction\nyes\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.kw", "p.csv", "t.csv"]
    assert "m.kw cannot be written" in sentence_of(fitted)  # before anything is read


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_draw_is_of_all_rows_and_the_same_however_they_are_read(tmp_path, monkeypatch, suffix):
    write(frame(500), tmp_path / f"t.{suffix}")
    found = []
    for size in (7, 1000):
        at_a_time(monkeypatch, size)
        table = files.read_table(str(tmp_path / f"t.{suffix}"), ["key", "label"], most=100)
        assert table.n_rows == 500
        found.append(table.frame)
    assert len(found[0]) == 100
    pd.testing.assert_frame_equal(*found)
    rows = found[0]["key"].astype(int)
    assert rows.is_monotonic_increasing
    assert 200 < rows.mean() < 300
    expected = frame(500).iloc[rows].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[0], expected, check_dtype=False)


def test_compare_says_that_rows_are_drawn(tmp_path):
    write(frame(120), tmp_path / "t.csv")
    more = ["--target", "label", "--method", "average_kernel", "--bank", "linear", "--folds", "2"]
    done = run("compare", tmp_path / "t.csv", *more, "--rows", "50", "--id", "key")
    assert done.exit_code == 0, done.output
    assert "50 of 120 rows are used, drawn at random" in done.output
    assert "50 rows of t" in done.output
    assert "--rows is 4 or more" in sentence_of(run("compare", tmp_path / "t.csv", *more, "--rows", "3"))
