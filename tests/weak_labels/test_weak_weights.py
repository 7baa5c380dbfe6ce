"""Samples, bags and pairs of weight zero decide nothing."""

import numpy as np
import pytest
from tests.weak_labels.test_bags import BASELINES, witness_bags
from tests.weak_labels.test_weak_labels import blobs

from kernelweave import KernelBank, MultiInstanceMKLClassifier, SemiSupervisedMKLClassifier
from kernelweave.kernels import Gaussian

# Kernels of diagonal one and fixed width, not centred: they do not depend on the other samples.
FIXED = KernelBank([Gaussian(gamma=0.2), Gaussian(gamma=1.0)])


@pytest.mark.parametrize("centers", [2, 3])
@pytest.mark.parametrize("threshold", ["zero", "balance"])
def test_samples_of_weight_zero_might_as_well_not_be_there(centers, threshold):
    X, y, _ = blobs(45, told=18, centers=centers)
    weight = np.ones(45)
    weight[np.flatnonzero(y == 1)[:5]] = 0.0  # labelled ones: they would shift the balance
    weight[np.flatnonzero(y < 0)[:9]] = 0.0
    used = weight > 0.0
    model = SemiSupervisedMKLClassifier(FIXED, centering=False, threshold=threshold, tol=1e-9, max_rounds=3)
    few = model.fit(X[used], y[used])
    values, transduction, balance, candidates = (
        few.decision_function(X),
        few.transduction_,
        few.balance_,
        few.candidates_,
    )
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.balance_, balance)
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-6)
    np.testing.assert_array_equal(model.transduction_[used], transduction)
    assert not np.isin(np.flatnonzero(~used), model.support_).any()
    for all_of_them, some in zip(
        [model.candidates_] if centers == 2 else model.candidates_,
        [candidates] if centers == 2 else candidates,
        strict=True,
    ):
        np.testing.assert_array_equal(all_of_them[..., used], some)
        assert not all_of_them[..., ~used].any()
    free = (y < 0) & ~used  # they are labelled nevertheless
    np.testing.assert_array_equal(model.transduction_[free], model.predict(X[free]))


def test_labels_of_weight_zero_do_not_decide_about_centring():
    X, y, _ = blobs(told=40)
    few = y.copy()
    few[np.flatnonzero(y == 1)[2:]] = -1
    weight = np.ones(len(y))
    weight[np.flatnonzero(y == 1)[2:]] = 0.0
    models = [
        SemiSupervisedMKLClassifier(FIXED, max_rounds=1).fit(X, labels, sample_weight=w).centered_
        for labels, w in ((y, None), (few, None), (y, weight))
    ]
    assert models == [True, False, False]


def test_labels_count_for_the_balance_by_their_weight():
    X, y, _ = blobs(60, told=20)
    heavy = SemiSupervisedMKLClassifier(FIXED, max_rounds=1).fit(X, y, np.where(y == 1, 3.0, 1.0))
    assert heavy.balance_[0] == pytest.approx(0.75, abs=0.02)
    plain = SemiSupervisedMKLClassifier(FIXED, max_rounds=1).fit(X, y)
    scaled = SemiSupervisedMKLClassifier(FIXED, max_rounds=1).fit(X, y, np.full(60, 1e-3))
    np.testing.assert_array_equal(scaled.balance_, plain.balance_)


def test_all_labels_of_weight_zero_are_an_error():
    X, y, _ = blobs(20)
    with pytest.raises(ValueError, match="All labelled samples have weight 0"):
        SemiSupervisedMKLClassifier(FIXED).fit(X, y, np.where(y < 0, 1.0, 0.0))
    with pytest.raises(ValueError, match=r"the weights of classes \[1\] sum to 0"):
        SemiSupervisedMKLClassifier(FIXED).fit(X, y, np.where(y == 1, 0.0, 1.0))


@pytest.mark.parametrize("Model", [MultiInstanceMKLClassifier, *BASELINES])
def test_bags_of_weight_zero_might_as_well_not_be_there(Model):
    bags, y = witness_bags(24)
    y[[2, 4, 6]] = 1  # wrong, and they would decide about the folds and the threshold
    used = ~np.isin(np.arange(24), [2, 4, 6, 7])
    model = Model(FIXED, centering=False, tol=1e-9)
    values = model.fit([bags[i] for i in np.flatnonzero(used)], y[used]).decision_function(bags)
    threshold = model.threshold_
    model.fit(bags, y, sample_weight=used.astype(float))
    assert model.threshold_ == pytest.approx(threshold, abs=1e-6)
    np.testing.assert_allclose(model.decision_function(bags), values, atol=1e-5)


def test_bags_of_weight_zero_do_not_decide_about_centring():
    bags, _ = witness_bags(20)
    y = (np.arange(20) % 5 == 1).astype(int)
    even = np.where(np.arange(20) % 5 == 2, 1, y)  # 8 of 20
    weight = np.where(np.arange(20) % 5 == 2, 0.0, 1.0)
    given = dict(threshold="zero", max_rounds=1)
    centred = [
        MultiInstanceMKLClassifier(FIXED, **given).fit(bags, labels, sample_weight=w).centered_
        for labels, w in ((y, None), (even, None), (even, weight))
    ]
    assert centred == [False, True, False]
