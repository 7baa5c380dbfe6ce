"""What an independent check of all estimators found, and must not come back."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave import (
    KernelBank,
    MKLClusterer,
    ObscureClassifier,
    SampleAdaptiveMKLClassifier,
    SemiSupervisedMKLClassifier,
)
from kernelweave.kernels import Gaussian
from kernelweave.solvers import Pegasos


def test_the_mean_of_iterates_stays_finite_when_steps_are_huge():
    X, y = load_iris(return_X_y=True)
    bank = KernelBank([Gaussian(scale=s) for s in (0.5, 2.0)])
    model = ObscureClassifier(bank, C=1e4, p=1.5, solver=Pegasos(epochs=4), random_state=0).fit(X, y)
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.kernel_weights_).all()
    assert 0.0 <= model.bounds_.lower <= model.bounds_.upper <= 1.0
    assert model.score(X, y) > 0.6


@pytest.mark.filterwarnings("ignore:Stopped")
def test_a_column_that_never_changes_is_no_obstacle_to_weak_labels():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.zeros(40)])
    y = np.where(X[:, 0] > 0, 1, 0)
    X[:, 0] += 3.0 * (2 * y - 1)
    given = np.where(np.arange(40) < 12, y, -1)
    bank = KernelBank.per_feature(widths=[1.0], degrees=[1])
    model = SemiSupervisedMKLClassifier(bank).fit(X, given)
    assert (model.predict(X) == y).mean() > 0.9
    clusters = MKLClusterer(bank).fit(X).labels_
    assert max((clusters == y).mean(), (clusters != y).mean()) > 0.9


def test_traces_of_kernels_that_are_not_centred_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="needs centre=True"):
        SampleAdaptiveMKLClassifier(centre=False, unit_trace=True).fit(X, y)
