"""fit, predict and inspect on files give what Python gives."""

import json
import signal
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from tests.cli.typed import frame, run

import kernelweave
from kernelweave import KernelBank, MKLClassifier, MKLRegressor, Views, presets
from kernelweave.cli import commands, methods
from kernelweave.cli.app import METHODS
from kernelweave.kernels import Gaussian, Linear
from kernelweave.solvers.problem import OuterState

pytest.importorskip("skops")
KERNELS = [Gaussian(scale=s) for s in (0.25, 1.0, 4.0)]
VIEWS = ["--view", "a=a1,a2", "--view", "b=b*"]


def predicted(file, **kinds):
    return pd.read_csv(file, dtype=kinds)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_with_text_labels_goes_round(tmp_path, suffix):
    table, new = frame(), frame(20, seed=1).drop(columns="label")
    for name, one in (("train", table), ("new", new)):
        file = tmp_path / f"{name}.{suffix}"
        one.to_csv(file, index=False) if suffix == "csv" else one.to_parquet(file)
    train, test = tmp_path / f"train.{suffix}", tmp_path / f"new.{suffix}"
    words = ["--target", "label", "--id", "key", *VIEWS, "--bank", "by_type", "--model", tmp_path / "m.kw"]
    done = run("fit", train, *words)
    assert done.exit_code == 0, done.output
    for words in (
        "a1, a2",
        "b1, b2, b3",
        "no × ",
        "b·laplacian(scale=4)",
        "others",
        "z-scores",
        "relative duality gap",
        "Model written",
    ):
        assert words in done.output
    done = run("predict", tmp_path / "m.kw", test, "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output

    columns = ["a1", "a2", "b1", "b2", "b3"]
    bank = KernelBank.by_type(views={"a": [0, 1], "b": [2, 3, 4]})
    model = MKLClassifier(bank).fit(table[columns], table["label"])
    found = predicted(tmp_path / "p.csv", key=str)
    assert found["key"].tolist() == new["key"].tolist()
    assert found["prediction"].tolist() == model.predict(new[columns]).tolist()
    np.testing.assert_allclose(found["decision"], model.decision_function(new[columns]), rtol=0, atol=1e-12)


def test_three_npz_views_are_joined_by_id_whatever_their_order(tmp_path):
    rng = np.random.default_rng(0)
    tables = {name: rng.normal(size=(50, d)) for name, d in (("rna", 4), ("mri", 3), ("gait", 2))}
    y = np.where(tables["rna"][:, 0] + tables["mri"][:, 1] > 0, "ill", "well")
    files = []
    for k, (name, values) in enumerate(tables.items()):
        order = np.random.default_rng(k).permutation(50)
        extra = {"label": y[order]} if name == "mri" else {}
        files.append(tmp_path / f"{name}.npz")
        np.savez(files[-1], id=order, values=values[order], **extra)
    done = run("fit", *files, "--target", "label", "--bank", "linear", "--model", tmp_path / "m.kw", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert list(summary["views"]) == ["rna", "mri", "gait"]
    assert summary["rows"] == 50
    done = run("predict", tmp_path / "m.kw", *files)
    rows = pd.read_csv(StringIO(done.stdout)).set_index("id")

    order = np.random.default_rng(0).permutation(50)  # that of the first file
    views = Views({name: t[order] for name, t in tables.items()})
    model = MKLClassifier(KernelBank.per_view([Linear()], transform="by_type")).fit(views, y[order])
    assert rows.index.tolist() == order.tolist()
    assert rows["prediction"].tolist() == model.predict(views).tolist()
    np.testing.assert_allclose(rows["decision"], model.decision_function(views), rtol=0, atol=1e-12)


def test_rows_that_lack_a_file_are_learnt_from_and_counted(tmp_path):
    table = frame()
    table[["key", "a1", "label"]].iloc[:40].to_csv(tmp_path / "one.csv", index=False)
    table[["key", "b1", "b2"]].iloc[10:].to_csv(tmp_path / "two.csv", index=False)
    words = ["--target", "label", "--id", "key", "--model", tmp_path / "m.kw", "--json"]
    done = run("fit", tmp_path / "one.csv", f"b={tmp_path / 'two.csv'}", *words)
    summary = json.loads(done.stdout)
    assert summary["rows"] == 40
    assert summary["views"] == {"one": ["a1"], "b": ["b1", "b2"]}
    assert summary["lacking"] == {"b": {"rows": 10, "who": [f"{k:03d}" for k in range(10)]}}
    (note,) = [note for note in summary["notes"] if "not learnt from" in note]
    assert note == (
        "20 of 60 rows are not in one, which has the target, and are not learnt from: 040, 041, 042, 043, 044, ..."
    )
    assert {row["column"]: row["lacking"] for row in summary["columns"]} == {"a1": 0, "b1": 10, "b2": 10}


def test_three_classes_and_numbers_go_round(tmp_path):
    table = frame(90, classes=("x", "y", "z"))
    table["amount"] = table["a1"] * 2.0 + table["b1"]
    table.to_csv(tmp_path / "t.csv", index=False)
    file, columns = tmp_path / "t.csv", ["a1", "a2", "b1", "b2", "b3"]
    done = run(
        "fit", file, "--target", "label", "--view", "v=a1:b3", "--method", "l2_mkl", "--model", tmp_path / "c"
    )
    assert done.exit_code == 0, done.output
    run("predict", tmp_path / "c", file, "--out", tmp_path / "p.csv")
    found = predicted(tmp_path / "p.csv")
    assert found.columns.tolist() == ["prediction", "decision x", "decision y", "decision z"]
    assert (found["prediction"] == kernelweave.load(tmp_path / "c").predict(table[columns])).all()

    words = [
        "--target",
        "amount",
        "--view",
        "v=a1:b3",
        "--cost",
        "10",
        "--bank",
        "gaussians",
        "--model",
        tmp_path / "r",
    ]
    assert "regression" in run("fit", file, *words).output
    run("predict", tmp_path / "r", file, "--out", tmp_path / "q.csv")
    bank = KernelBank.per_view(KERNELS, views={"v": [0, 1, 2, 3, 4]}, transform="by_type")
    model = MKLRegressor(bank).set_params(learner__C=10.0)
    expected = model.fit(table[columns], table["amount"]).predict(table[columns])
    np.testing.assert_allclose(predicted(tmp_path / "q.csv")["prediction"], expected, rtol=0, atol=1e-12)


def test_inspect_shows_columns_weights_and_versions(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "--target", "label", *VIEWS, "--model", tmp_path / "m.kw")
    label = json.loads(run("inspect", tmp_path / "m.kw", "--json").stdout)
    assert sum(label["weights"].values()) == pytest.approx(1.0)
    assert label["certificate"]["lower"] <= label["certificate"]["upper"]
    assert label["notes"]["left_out"] == {"key": "not named in a view"}
    text = run("inspect", tmp_path / "m.kw").output
    assert "left out: not named in a view" in text
    assert f"numpy {np.__version__}" in text


def test_without_views_all_columns_are_used_and_what_cannot_help_is_named(tmp_path):
    frame().assign(ID=range(60), word="w", kind=["x", "y"] * 30).to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--id", "key", "--model", tmp_path / "m.kw", "--json"]
    summary = json.loads(run("fit", tmp_path / "t.csv", *words).stdout)
    assert summary["views"] == {"all": ["a1", "a2", "b1", "b2", "b3", "word", "kind"]}
    assert summary["left_out"] == {"ID": "looks like an id"}
    made = {row["column"]: (row["type"], row["encoding"], row["note"]) for row in summary["columns"]}
    assert made["word"] == ("category", "left out", "constant")
    assert made["kind"] == ("category", "indicators", "")
    assert made["a1"] == ("number", "z-scores", "")


def test_a_missing_id_is_noted_and_rows_are_numbered(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    frame().drop(columns=["key", "label"]).to_csv(tmp_path / "new.csv", index=False)
    run("fit", tmp_path / "t.csv", "--target", "label", "--id", "key", *VIEWS, "--model", tmp_path / "m.kw")
    done = run("predict", tmp_path / "m.kw", tmp_path / "new.csv")
    assert done.exit_code == 0
    assert "no id column 'key'" in done.stderr
    assert done.stdout.startswith("prediction,decision\n")


@pytest.mark.parametrize("method", methods.method_names("classification"))
@pytest.mark.filterwarnings("ignore")
def test_every_method_can_be_fitted(method):
    table = frame(24)
    model = methods.make_model(
        method, methods.make_bank("linear", {"v": ["a1", "a2", "b1"]}), "classification", None
    )
    assert (
        model.fit(table[["a1", "a2", "b1"]], table["label"]).score(table[["a1", "a2", "b1"]], table["label"])
        > 0.4
    )


def test_every_preset_for_tables_is_a_method():
    others = {
        "iokl",
        "iokl_bags",
        "iokl_clustering",
        "mi_svm",
        "set_kernel",
        "witness_mi_svm",
        "svm_2k",
        "svm_plus",
        "itml",
        "itml_plus",
        "itml_plus_hard",
        "itml_plus_thesis",
        "itml_s",
    }
    assert {*presets.__all__, "default", "searched"} - others == set(methods.method_names("classification"))


def test_the_help_names_every_method():
    assert set(METHODS.split(", ")) == set(methods.method_names("classification"))


@pytest.mark.parametrize("target", ["label", "b3"])
def test_the_bar_of_a_fit_is_not_saved_with_the_model(target, tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    request = commands.Request([str(tmp_path / "t.csv")], target, ["v=a1,a2"], bank="linear", verbose=1)
    _, fitted = commands.fit(request, tmp_path / "m.kw")
    assert fitted.model.verbose == 0
    assert kernelweave.load(tmp_path / "m.kw").verbose == 0


def test_ctrl_c_while_solving_keeps_the_best_weights_and_says_their_gap(tmp_path, monkeypatch):
    frame().to_csv(tmp_path / "t.csv", index=False)
    evaluated, evaluate = [], OuterState.evaluate

    def interrupted(self, *args, **named):
        evaluated.append(self)
        if len(evaluated) == 2:
            signal.raise_signal(signal.SIGINT)
        return evaluate(self, *args, **named)

    monkeypatch.setattr(OuterState, "evaluate", interrupted)
    words = ["fit", tmp_path / "t.csv", "--target", "label", *VIEWS, "--model", tmp_path / "m.kw", "--json"]
    done = run(*words, "--report", tmp_path / "r.html")
    assert done.exit_code == 130, done.output
    assert "m.kw holds the best weights so far" in done.stderr
    assert "r.html is not written" in done.stderr
    summary = json.loads(done.stdout)
    assert summary["stopped"]
    (note,) = summary["notes"]
    assert "Stopped at a relative duality gap" in note
    assert "interrupt" in note
    kept = (tmp_path / "m.kw").read_bytes()
    assert kernelweave.load(tmp_path / "m.kw").duality_gap_ > 1e-4
    assert len(evaluated) == 2
    assert not (tmp_path / "r.html").exists()

    evaluated.clear()
    done = run(*words)  # what is there already is not given up for less
    assert done.exit_code == 130
    assert "was not written" in done.stderr
    assert (tmp_path / "m.kw").read_bytes() == kept
    assert len(list(tmp_path.iterdir())) == 2


def test_ctrl_c_leaves_the_old_model_and_says_so(tmp_path, monkeypatch):
    frame().to_csv(tmp_path / "t.csv", index=False)
    words = ["fit", tmp_path / "t.csv", "--target", "label", "--model", tmp_path / "m.kw"]
    run(*words)
    before = (tmp_path / "m.kw").read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(MKLClassifier, "fit", stop)
    done = run(*words)
    assert done.exit_code == 130
    assert "was not written" in done.stderr
    assert (tmp_path / "m.kw").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_files_to_read_are_never_written_over(tmp_path):
    folder = tmp_path / "day=1"
    folder.mkdir()
    frame().to_csv(folder / "t.csv", index=False)
    before = (folder / "t.csv").read_bytes()
    words = ["fit", folder / "t.csv", "--target", "label"]
    assert run(*words, "--model", folder / "t.csv").exit_code == 2
    done = run(*words, "--model", tmp_path / "m.kw")
    assert done.exit_code == 0, done.output
    done = run("predict", tmp_path / "m.kw", folder / "t.csv", "--out", folder / "t.csv")
    assert done.exit_code == 2
    assert "one of the files to read" in done.stderr
    assert (folder / "t.csv").read_bytes() == before


def test_other_files_are_not_replaced_by_a_model_or_by_predictions(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    np.savez(tmp_path / "arrays.kw", a=np.eye(2))  # an archive, but not a model
    (tmp_path / "letter.csv").write_text("Dear reader,")
    words = ["fit", tmp_path / "t.csv", "--target", "label"]
    (tmp_path / "arrays.kw.npz").rename(tmp_path / "arrays.kw")
    done = run(*words, "--model", tmp_path / "arrays.kw")
    assert done.exit_code == 2
    assert "is not a model file" in done.stderr
    run(*words, "--model", tmp_path / "m.kw")
    again = [run("predict", tmp_path / "m.kw", tmp_path / "t.csv", "--out", tmp_path / "p.csv") for _ in "12"]
    assert [done.exit_code for done in again] == [0, 0]
    done = run("predict", tmp_path / "m.kw", tmp_path / "t.csv", "--out", tmp_path / "letter.csv")
    assert done.exit_code == 2
    assert "is not a file of predictions" in done.stderr
    assert (tmp_path / "letter.csv").read_text() == "Dear reader,"


def test_ids_are_not_learnt_from_and_shared_ones_are_noted(tmp_path):
    people = frame().assign(patient_id=np.arange(60) // 3, index=range(60), grid=range(60))
    people.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--id", "key", "--model", tmp_path / "m.kw", "--json"]
    summary = json.loads(run("fit", tmp_path / "t.csv", *words).stdout)
    assert summary["left_out"] == {"patient_id": "looks like an id", "index": "looks like an id"}
    assert "grid" in summary["views"]["all"]
    assert [note for note in summary["notes"] if "'patient_id'" in note and "too good" in note]
    summary = json.loads(run("fit", tmp_path / "t.csv", *words, "--view", "a=patient_id,a1").stdout)
    assert summary["views"] == {"a": ["patient_id", "a1"]}


def test_probabilities_are_learnt_when_asked_for(tmp_path):
    table, new = frame(), frame(20, seed=1)
    table.to_csv(tmp_path / "t.csv", index=False)
    new.to_csv(tmp_path / "n.csv", index=False)
    words = ["fit", tmp_path / "t.csv", "--target", "label", *VIEWS, "--model", tmp_path / "m.kw"]
    assert run(*words, "--probability").exit_code == 0
    found = predicted(StringIO(run("predict", tmp_path / "m.kw", tmp_path / "n.csv").stdout))
    model = kernelweave.load(tmp_path / "m.kw")
    expected = model.predict_proba(new[["a1", "a2", "b1", "b2", "b3"]])
    np.testing.assert_allclose(found[["probability no", "probability yes"]], expected, rtol=0, atol=1e-12)
    done = run(
        "fit", tmp_path / "t.csv", "--target", "a1", *VIEWS[2:], "--model", tmp_path / "r.kw", "--probability"
    )
    assert done.exit_code == 2
    assert "gives no probabilities" in done.stderr


def test_words_that_look_like_numbers_are_read_as_at_fit(tmp_path):
    table = frame().assign(code=["01", "x"] * 30)
    table["label"] = np.where(table["code"] == "01", "a", "b")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.iloc[::2].drop(columns="label").to_csv(tmp_path / "new.csv", index=False)  # no cell but 01
    run("fit", tmp_path / "t.csv", "--target", "label", "--id", "key", "--model", tmp_path / "m.kw")
    found = [
        predicted(StringIO(run("predict", tmp_path / "m.kw", tmp_path / name).stdout), key=str).set_index(
            "key"
        )
        for name in ("t.csv", "new.csv")
    ]
    pd.testing.assert_frame_equal(found[0].iloc[::2], found[1])
    assert set(found[1]["prediction"]) == {"a"}


@pytest.mark.parametrize("options", [[], ["--landmarks", "30"]], ids=["held", "in parts"])
def test_words_that_were_meant_to_be_dates_are_noted(tmp_path, options):
    table = frame()
    days = pd.date_range("2024-01-01", periods=60)
    table["european"] = days.strftime("%d/%m/%Y")
    table["mixed"] = [day.strftime("%Y-%m-%d" if k % 2 else "%d.%m.%y") for k, day in enumerate(days)]
    table["gap"] = ["not yet" if k == 7 else f"{day:%Y-%m-%d}" for k, day in enumerate(days)]
    table["read"] = days.strftime("%Y-%m-%d %H:%M")
    table["version"] = [f"1.{k}.0" for k in range(60)]
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--id", "key", "--model", tmp_path / "m.kw", "--json"]
    done = run("fit", tmp_path / "t.csv", *words, *options)
    assert done.exit_code == 0, done.output
    noted = [note for note in json.loads(done.stdout)["notes"] if "2024-05-31" in note]
    assert [note.split("'")[1:4:2] for note in noted] == [
        ["european", "01/01/2024"],
        ["mixed", "01.01.24"],
        ["gap", "not yet"],
    ]


def test_dates_written_in_another_way_at_prediction_are_noted(tmp_path):
    days = pd.date_range("2024-01-01", periods=60)
    table = frame().assign(seen=days.strftime("%Y-%m-%d"))
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--id", "key", "--model", tmp_path / "m.kw"]
    assert run("fit", tmp_path / "t.csv", *words).exit_code == 0
    table.assign(seen=days.strftime("%d/%m/%Y")).to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", tmp_path / "m.kw", tmp_path / "new.csv", "--json")
    assert done.exit_code == 0, done.output
    (note,) = json.loads(done.stdout)["notes"]
    assert "Column 'seen' of X held dates when the model was fitted; cells that hold none now count" in note
    assert "such as '01/01/2024' in row 0" in note


@pytest.mark.parametrize("options", [[], ["--landmarks", "30"]], ids=["held", "in parts"])
def test_a_class_named_like_an_empty_cell_is_noted(tmp_path, options):
    table = frame()
    table["label"] = np.where(np.arange(60) % 7 == 0, "NA", table["label"])
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--id", "key", "--model", tmp_path / "m.kw", "--json"]
    done = run("fit", tmp_path / "t.csv", *words, *options)
    assert done.exit_code == 0, done.output
    assert any("'NA' is one of the classes of 'label'" in note for note in json.loads(done.stdout)["notes"])
