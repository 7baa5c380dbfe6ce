"""Comparisons in views: what is done about missing views, what is measured, what is shown."""

import numpy as np
import pytest
from sklearn.impute import KNNImputer

from kernelweave import KernelBank, MKLClassifier, SampleAdaptiveMKLClassifier, Views
from kernelweave.experiments.papers.sample_adaptive import (
    EXPERIMENTS,
    PRINTED,
    TASKS,
    Missing,
    Swapped,
)
from kernelweave.experiments.view_comparison import (
    ViewComparison,
    ViewMethod,
    ViewSplit,
    handle_missing_views,
)
from kernelweave.experiments.views import Accuracies, TaskMeans
from kernelweave.learners import Hinge

# That all kernels do no worse is an answer, not a fault.
pytestmark = pytest.mark.filterwarnings("ignore:The switches were left out")


@pytest.fixture
def drawn(rng):
    A, B = rng.normal(size=(8, 2)), rng.normal(size=(8, 1))
    B[[1, 4]] = np.nan
    test = Views({"a": A[:3] + 1.0, "b": np.array([[np.nan], [1.0], [2.0]])})
    return ViewSplit(Views({"a": A, "b": B}), np.arange(8) % 2, test, np.zeros(3))


def test_missing_views_are_left_dropped_or_imputed_from_training_samples(drawn):
    assert handle_missing_views(drawn, "nothing")[0] is drawn.X
    X, y, X_test = handle_missing_views(drawn, "drop")
    assert len(X) == len(y) == 6
    assert y.tolist() == [0, 0, 1, 1, 0, 1]
    mean = np.nanmean(drawn.X["b"])
    assert X_test["b"][:, 0] == pytest.approx([mean, 1.0, 2.0])
    X, y, _ = handle_missing_views(drawn, "mean")
    assert len(y) == 8
    assert X["b"][[1, 4], 0] == pytest.approx([mean, mean])
    table = np.hstack([drawn.X["a"], drawn.X["b"]])
    np.testing.assert_allclose(
        handle_missing_views(drawn, "knn")[0]["b"], KNNImputer().fit_transform(table)[:, 2:]
    )


def test_a_cell_is_measured_the_same_every_time_and_has_what_the_tables_show():
    bank = KernelBank.per_view()
    methods = {
        "plain": ViewMethod(MKLClassifier(bank, learner=Hinge())),
        "switched": ViewMethod(
            SampleAdaptiveMKLClassifier(bank, learner=Hinge(), max_flips=2, fallback=False)
        ),
    }
    study = ViewComparison(
        "test", Swapped(), methods, C=(1.0, 10.0), splits=1, folds=2, quick={"split": (0,)}
    )
    cell = {"dataset": Swapped().tasks[0], "split": 0, "method": "switched"}
    assert cell in study.cells(quick=True)
    one, two = study.measure(cell, None), study.measure(cell, None)
    assert one["accuracy"] == two["accuracy"] > 0.8
    assert one["auc"] > 0.6
    assert one["C"] in (1.0, 10.0)
    assert one["relative_gap"] <= 1e-4


def test_too_few_complete_samples_are_no_accuracy(drawn):
    class Fixed:
        datasets, tasks = (), ("x",)

        def split(self, *_):
            return drawn

    study = ViewComparison("test", Fixed(), {"m": ViewMethod(MKLClassifier(), "drop")}, C=(1.0,), splits=1)
    assert np.isnan(study.measure({"dataset": "x", "split": 0, "method": "m"}, None)["accuracy"])


def test_tables_show_means_printed_figures_and_differences():
    records = [
        {
            "dataset": "t",
            "split": s,
            "method": m,
            "accuracy": a + 0.01 * s,
            "seconds": k,
            "predict_seconds": k,
        }
        for m, a, k in (("base", 0.8, 1.0), ("mine", 0.9, 3.0))
        for s in range(2)
    ]
    view = Accuracies(("t",), ("mine", "base"), "base", {"t": {"mine": 88.0}}, seconds=True)
    scores, differences, times = view.tables(records)
    assert scores.rows[0] == ("t", "90.5 ± 0.5", "80.5 ± 0.5")
    assert scores.rows[1] == ("", "[88.0]", "–")
    assert differences.rows[0] == ("t", "+10.00 ± 0.00", "–")
    assert times.rows[0] == ("training", "3.0", "1.0")
    assert view.tables([]) == []
    (means,) = TaskMeans("seconds", "Seconds", ("t",)).tables(records)
    assert means.rows == (("t", "1.000", "3.000"),)


def test_views_that_are_removed_leave_every_sample_one():
    split = Missing().split("three views, 50 %", 0, None)
    for X in (split.X, split.X_test):
        gone = np.column_stack([np.isnan(table).all(axis=1) for _, table in X.items()])
        assert not gone.all(axis=1).any()
        assert 0.3 < gone.mean() < 0.5


def test_the_printed_table_has_every_task():
    assert len(TASKS) == 10
    assert np.mean([row["SAMKL"] for row in PRINTED.values()]) == pytest.approx(91.39)
    assert {e.id for e in EXPERIMENTS} == {"sa-table1", "sa-table2", "sa-corrupted", "sa-missing"}
