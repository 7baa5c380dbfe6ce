"""The study of metrics with privileged information, on data small enough for tests."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave.bank import Views
from kernelweave.datasets import Dataset
from kernelweave.experiments.papers import privileged_metrics
from kernelweave.experiments.papers.privileged_metrics import (
    METHODS,
    Candidates,
    TwoViews,
    VerificationStudy,
)

STUDY = VerificationStudy(
    name="toy",
    samples=(TwoViews("iris", "sepal", "petal"),),
    methods={
        name: Candidates(c.learner, dict(list(c.grid.items())[:1]), c.shuffled) for name, c in METHODS.items()
    },
    n_pairs=60,
    shares=(0.0, 1.0),
    splits=2,
    quick={"split": (0,)},
)


@pytest.fixture(autouse=True)
def iris(monkeypatch):
    X, y = load_iris(return_X_y=True)
    X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    data = Dataset("iris", Views({"sepal": X[:, :2], "petal": X[:, 2:]}), y)
    monkeypatch.setattr(privileged_metrics, "load", lambda name, directory: data)  # noqa: ARG005


def cell(method, share=1.0, split=0):
    return {"dataset": "iris", "share": share, "split": split, "method": method}


def test_cells_are_all_combinations():
    assert len(STUDY.cells(quick=False)) == 2 * 2 * len(METHODS)
    assert len(STUDY.cells(quick=True)) == 2 * len(METHODS)


def test_measures_repeat_and_lie_in_range():
    for method in METHODS:
        found = STUDY.measure(cell(method), None)
        assert found == STUDY.measure(cell(method), None)
        assert 0.3 < found["average_precision"] <= 1.0
        assert 0.5 < found["roc_auc"] <= 1.0


def test_without_privileged_pairs_shuffling_them_changes_nothing():
    first, second = (STUDY.measure(cell(m, share=0.0), None) for m in ("ITML+", "ITML+ shuffled"))
    assert first == second
    third, fourth = (STUDY.measure(cell(m, share=1.0), None) for m in ("ITML+", "ITML+ shuffled"))
    assert third != fourth


def test_every_learner_has_as_many_candidates():
    counts = {name: len(candidates.models()) for name, candidates in METHODS.items() if candidates.grid}
    assert set(counts.values()) == {9}
