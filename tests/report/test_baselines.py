"""Baselines are models of the same loss, columns and costs as the model."""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.report.samples import BANK, TWO, X, made

import kernelweave as kw
from kernelweave import KernelBank
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge, SquaredHinge
from kernelweave.report.baselines import AVERAGE, CONCATENATED, SINGLE, baselines


def test_baselines_have_the_models_loss_and_look_at_its_columns_only():
    leaking = np.column_stack([X, TWO == "yes"])
    model = made(learner=SquaredHinge(C=7.0)).fit(leaking, TWO)
    found = baselines(model, model[-1], TWO)
    for one in (found[name] for name in (AVERAGE, SINGLE, CONCATENATED)):
        inner = getattr(one, "estimator", one)
        assert inner[-1].learner == SquaredHinge(C=7.0)
    assert found[SINGLE].cv == 3
    assert len(found[SINGLE].param_grid["mklclassifier__bank"]) == 6
    joined = clone(found[CONCATENATED]).fit(leaking, TWO)
    alone = make_pipeline(
        StandardScaler(), kw.MKLClassifier(KernelBank([Gaussian()]), learner=SquaredHinge(C=7.0))
    )
    np.testing.assert_allclose(
        joined.decision_function(leaking), alone.fit(X, TWO).decision_function(X), atol=1e-3
    )


def test_baselines_of_a_search_choose_among_the_same_costs():
    grid = {"mklclassifier__learner__C": [0.1, 10.0]}
    model = GridSearchCV(made(learner=Hinge()), grid, cv=2).fit(X, TWO)
    found = baselines(model, model.best_estimator_[-1], TWO)
    for name in (AVERAGE, SINGLE, CONCATENATED):
        assert found[name].param_grid["mklclassifier__learner__C"] == [0.1, 10.0]
    own = kw.MKLClassifierCV(BANK, learner_values=(0.5, 5.0), cv=2).fit(X, TWO)
    assert baselines(own, own.best_estimator_, TWO)[AVERAGE].param_grid["learner__C"] == [0.5, 5.0]
    inside = make_pipeline(StandardScaler(), own).fit(X, TWO)
    costs = baselines(inside, inside[-1].best_estimator_, TWO)[AVERAGE].param_grid
    assert list(costs.values()) == [[0.5, 5.0]]
