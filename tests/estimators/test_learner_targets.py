"""A learner says what it is for, and an estimator of something else refuses it."""

import numpy as np
import pytest

from kernelweave import FHeuristicClassifier, KernelBank, MKLClassifier, MKLRegressor, learners
from kernelweave.errors import IncompatiblePartsError
from kernelweave.kernels import Linear
from kernelweave.learners import EpsilonInsensitive, Fisher, Hinge, NuHinge, OneClass, Square, SquaredHinge

BANK = KernelBank([Linear()])


def samples():
    X = np.random.default_rng(0).normal(size=(30, 2))
    return X, X[:, 0] + 0.1 * X[:, 1]


@pytest.mark.parametrize("learner", [OneClass(), Fisher(), Hinge(), NuHinge(), SquaredHinge()], ids=repr)
def test_regression_refuses_machines_of_other_tasks(learner):
    X, y = samples()
    with pytest.raises(
        IncompatiblePartsError, match="Learners that can: EpsilonInsensitive, Square"
    ) as error:
        MKLRegressor(BANK, learner=learner).fit(X, y)
    assert "cannot learn from real targets" in str(error.value)


@pytest.mark.parametrize("kind", [MKLClassifier, FHeuristicClassifier])
def test_classification_refuses_the_machine_without_labels(kind):
    X, y = samples()
    match = r"OneClass.* cannot learn from labels of classes: it is for samples without targets.*Hinge"
    with pytest.raises(IncompatiblePartsError, match=match):
        kind(BANK, learner=OneClass()).fit(X, y > 0)


@pytest.mark.parametrize("learner", [Square(), EpsilonInsensitive()], ids=repr)
def test_machines_of_regression_tell_classes_apart_too(learner):
    X, y = samples()
    assert MKLClassifier(BANK, learner=learner).fit(X, y > 0).score(X, y > 0) > 0.9


def test_every_learner_says_what_it_is_for():
    for name in set(learners.__all__) - {"Learner", "Machine", "OneVsRest"}:
        assert set(getattr(learners, name).learns_from) <= {"classes", "real", "none"}


def test_a_learner_of_somebody_else_need_not_say(monkeypatch):
    X, y = samples()
    monkeypatch.delattr("kernelweave.learners.tuned.Tuned.learns_from")
    assert MKLRegressor(BANK, learner=Hinge()).fit(X, np.sign(y)).duality_gap_ <= 1e-4
