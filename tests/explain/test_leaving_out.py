"""Leaving a view out refits without its kernels, on the same splits."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import KernelBank, Views
from kernelweave.evaluation import paired
from kernelweave.explain import leave_view_out
from kernelweave.kernels import Gaussian, Linear

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 6))
Y = np.where(X[:, 0] * 2 + X[:, 2] > 0, "yes", "no")
KERNELS = [Linear(), Gaussian()]
ALL = {"strong": [0, 1], "weak": [2, 3], "noise": [4, 5]}


def model(views, kernels=KERNELS):
    return make_pipeline(StandardScaler(), kw.MKLClassifier(KernelBank.per_view(kernels, views=views)))


def test_scores_are_those_of_a_model_that_never_had_the_view():
    found = leave_view_out(model(ALL), X, Y, cv=3, random_state=4)
    folds = StratifiedKFold(3, shuffle=True, random_state=4)
    np.testing.assert_allclose(found.scores, cross_val_score(model(ALL), X, Y, cv=folds))
    for view in ALL:
        others = {name: columns for name, columns in ALL.items() if name != view}
        np.testing.assert_allclose(found.without[view], cross_val_score(model(others), X, Y, cv=folds))
        expected = paired(found.scores, found.without[view], test_share=1 / 3)
        assert found.costs()[view].interval == pytest.approx(expected.interval)


def test_the_view_with_the_signal_costs_most():
    costs = leave_view_out(model(ALL), X, Y).costs()
    assert costs["strong"].difference > 0.1
    assert costs["strong"].difference > max(costs["weak"].difference, costs["noise"].difference)


def test_tables_searches_regression_and_given_kernels_work_too():
    views = Views({"left": X[:, :2], "right": X[:, 2:]})
    search = GridSearchCV(kw.MKLClassifier(KernelBank.per_view()), {"learner__C": [1.0, 3.0]}, cv=2)
    assert set(leave_view_out(search, views, Y, cv=2).without) == {"left", "right"}
    numbers = leave_view_out(kw.MKLRegressor(KernelBank.per_view(views=ALL)), X, X[:, 0], cv=2)
    assert numbers.costs()["strong"].difference > 0.3
    matrices = [X[:, columns] @ X[:, columns].T for columns in ALL.values()]
    given = leave_view_out(kw.MKLClassifier("precomputed"), matrices, Y, cv=3).costs()
    assert max(given, key=lambda name: given[name].difference) == "kernel 0"
    named = leave_view_out(
        kw.MKLClassifier(KernelBank.per_view([Linear()], views=ALL, scaling=None)), X, Y, cv=3
    ).costs()
    assert [c.difference for c in given.values()] == pytest.approx([c.difference for c in named.values()])


def test_what_cannot_be_left_out_is_refused():
    with pytest.raises(ValueError, match="one view only"):
        leave_view_out(kw.MKLClassifier(KernelBank([Linear()])), X, Y)
    with pytest.raises(TypeError, match="StandardScaler"):
        leave_view_out(StandardScaler(), X, Y)
    with pytest.raises(ValueError, match="two samples or more of every class"):
        leave_view_out(model(ALL), X, ["odd", *Y[1:]])
