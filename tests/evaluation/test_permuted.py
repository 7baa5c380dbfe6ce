"""The control sees the same folds, and only the order of the privileged rows differs."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold

from kernelweave.evaluation import permuted_control


class Recorder(ClassifierMixin, BaseEstimator):
    """Scores 1 where the privileged rows belong to the samples, 0.5 where they do not, 0 without any."""

    def fit(self, X, y, privileged=None):
        self.classes_ = np.unique(y)
        self.value_ = 0.0
        if privileged is not None:
            assert sorted(privileged[:, 0]) == sorted(X[:, 0])  # of these samples, in whatever order
            self.value_ = 1.0 if np.array_equal(privileged, X) else 0.5
        return self

    def score(self, X, y):  # noqa: ARG002
        return self.value_


def test_rows_are_shuffled_within_each_training_part_and_nothing_else_changes():
    X = np.arange(20.0)[:, None]
    control = permuted_control(
        Recorder(), X, np.arange(20) % 2, X, cv=KFold(4), n_permutations=3, random_state=0
    )
    np.testing.assert_array_equal(control.scores, np.ones(4))
    np.testing.assert_array_equal(control.permuted, np.full((3, 4), 0.5))
    np.testing.assert_array_equal(control.without, np.zeros(4))
    assert control.gain == 0.5
    assert control.gain_of_shuffled == 0.5


def test_the_same_seed_shuffles_alike():
    X = np.random.default_rng(0).normal(size=(12, 1))
    y = np.arange(12) % 2

    class Order(Recorder):
        def fit(self, X, y, privileged=None):  # noqa: ARG002
            self.value_ = 0.0 if privileged is None else float(privileged[0, 0])
            return self

    first, again, other = (permuted_control(Order(), X, y, X, cv=3, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.permuted, again.permuted)
    assert not np.array_equal(first.permuted, other.permuted)
