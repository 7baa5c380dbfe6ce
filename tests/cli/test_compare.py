"""compare scores methods and baselines on the same splits."""

import json
import os
import signal

import numpy as np
import pytest
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from tests.cli.test_broken_input import is_one_sentence
from tests.cli.typed import frame, run

from kernelweave import KernelBank, MKLClassifier, presets
from kernelweave.cli.commands import Request, prepare
from kernelweave.cli.compare import ComparisonResult, candidates
from kernelweave.evaluation import paired
from kernelweave.kernels import Gaussian

VIEWS = ["--view", "a=a1,a2", "--view", "b=b*"]
BASELINES = ["average kernel", "best single kernel", "concatenation", "late fusion", "stacking"]


@pytest.fixture
def file(tmp_path):
    frame(80).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_scores_are_those_of_cross_validation_and_differences_are_paired(file):
    words = [
        "--target",
        "label",
        *VIEWS,
        "--method",
        "simple_mkl",
        "--bank",
        "gaussians",
        "--folds",
        "3",
        "--json",
    ]
    done = run("compare", file, *words)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert list(summary["scores"]) == ["most frequent class", *BASELINES, "simple_mkl"]
    assert list(summary["differences"]) == ["simple_mkl"]
    assert list(summary["differences"]["simple_mkl"]) == BASELINES

    table = frame(80)
    X, y = table[["a1", "a2", "b1", "b2", "b3"]], table["label"]
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=0)
    kernels = [Gaussian(scale=s) for s in (0.25, 1.0, 4.0)]
    bank = KernelBank.per_view(kernels, views={"a": [0, 1], "b": [2, 3, 4]}, transform="by_type")
    whole = KernelBank.per_view([Gaussian()], transform="by_type")
    for name, model in (
        ("simple_mkl", presets.simple_mkl(bank)),
        ("average kernel", presets.average_kernel(bank)),
        ("concatenation", presets.average_kernel(whole)),
    ):
        expected = cross_val_score(model, X, y, cv=cv)
        np.testing.assert_allclose(summary["scores"][name], expected)
    found = paired(summary["scores"]["simple_mkl"], summary["scores"]["best single kernel"], test_share=1 / 3)
    shown = summary["differences"]["simple_mkl"]["best single kernel"]
    assert shown["difference"] == pytest.approx(found.difference)
    assert shown["interval"] == pytest.approx(list(found.interval))


def test_the_best_single_kernel_is_looked_for_among_all_of_the_bank(file):
    request = Request([str(file)], "label", VIEWS[1::2], bank="distances")
    prepared = prepare(request)
    X, count = prepared.X, len(prepared.bank.fit(prepared.X))
    search = candidates(request, prepared, ["simple_mkl"])["best single kernel"]
    assert search.cv == 3
    (banks,) = search.param_grid.values()
    assert len(banks) == count > 8
    assert len({bank.fit(X).names for bank in banks}) == count


def test_the_table_shows_every_method_and_numbers_can_be_compared_too(file):
    output = run("compare", file, "--target", "label", *VIEWS, "--folds", "2", "--bank", "linear").output
    for word in (*BASELINES, "simple_mkl", "l2_mkl", "minus average kernel", "accuracy on 2 splits"):
        assert word in output
    words = ["--target", "a1", "--view", "v=a2:b3", "--folds", "2", "--bank", "distances"]
    output = run("compare", file, *words).output
    assert "R² on 2 splits" in output
    assert "mean of the target" in output


def test_predicting_the_majority_scores_what_the_majority_scores(tmp_path):
    rng = np.random.default_rng(0)
    table = frame(30).assign(**{name: rng.normal(size=30) for name in ("a1", "a2", "b1")})
    table["label"] = ["rare"] * 5 + ["usual"] * 25
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--view", "v=a1,a2,b1", "--cost", "0.001", "--bank", "gaussians"]
    done = run("compare", tmp_path / "t.csv", *words, "--json")
    summary = json.loads(done.stdout, parse_constant=pytest.fail)
    assert summary["scores"]["simple_mkl"] == summary["scores"]["most frequent class"]
    assert summary["differences"]["simple_mkl"]["average kernel"] == {
        "difference": 0.0,
        "interval": None,
        "p_value": None,
    }
    output = run("compare", tmp_path / "t.csv", *words).output
    assert "+0.0000 –" in output
    assert "Note: – is no interval" in output


def test_many_intervals_come_with_a_caution():
    scores = {name: [0.5, 0.6, 0.5 + 0.1 * k] for k, name in enumerate([*BASELINES, *"xyz"])}
    for names, is_noted in ((scores, True), ([*BASELINES, *"xy"], False)):
        notes = ComparisonResult([], 3, {name: scores[name] for name in names}).summary()["notes"]
        assert any("15 intervals is for itself" in note for note in notes) == is_noted


def test_ctrl_c_shows_what_was_finished(file, monkeypatch):
    fits = []
    fit = MKLClassifier.fit

    def press(self, *args):
        fits.append(self)
        done = fit(self, *args)
        if self.geometry is None:  # the first method after the baselines
            try:  # a fit that catches the interrupt and stops early
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                return done
        return done

    monkeypatch.setattr(MKLClassifier, "fit", press)
    done = run("compare", file, "--target", "label", *VIEWS, "--folds", "2", "--bank", "linear")
    assert done.exit_code == 130
    assert f"finished: most frequent class, {', '.join(BASELINES)}." in done.stderr
    assert "l2_mkl" not in done.output
    assert "Note:" not in done.output
    assert sum(model.geometry is None for model in fits) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--folds", "1"], "--folds is 2 or more"),
        (["--repeats", "0"], "--repeats 1 or more"),
        (["--folds", "60"], "60 folds"),
        (["--method", "nothing"], "no method 'nothing'"),
    ],
)
def test_mistakes_are_one_sentence(file, words, sentence):
    is_one_sentence(run("compare", file, "--target", "label", *words), sentence)


def test_people_who_lack_a_table_are_compared_on_every_single_kernel(tmp_path):
    table = frame(80)
    table[["key", "a1", "a2", "label"]].to_csv(tmp_path / "one.csv", index=False)
    table[["key", "b1", "b2"]][25:].to_csv(tmp_path / "two.csv", index=False)
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    done = run("compare", *files, "--target", "label", "--method", "simple_mkl", "--folds", "2", "--json")
    assert done.exit_code == 0, done.output
    notes = json.loads(done.stdout)["notes"]
    assert not [note for note in notes if "failed" in note or "non-finite" in note]
