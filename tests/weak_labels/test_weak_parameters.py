"""What the parameters for weak labels do, each against what it says, and what is refused."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, cross_val_score
from tests.reference import weak
from tests.weak_labels.test_bags import BASELINES, witness_bags
from tests.weak_labels.test_weak_labels import BANK, blobs

from kernelweave import (
    InstanceLabelMKLClassifier,
    KernelBank,
    MKLClusterer,
    MultiInstanceMKLClassifier,
    SemiSupervisedMKLClassifier,
    SingleInstanceMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.geometry import LpBall
from kernelweave.kernels import Gaussian, Linear
from kernelweave.weak_labels.bag_classifier import best_cut

FIXED = KernelBank([Gaussian(gamma=0.2)])
EVERY = [MultiInstanceMKLClassifier, *BASELINES]


def test_a_class_weight_is_a_weight_of_its_labelled_samples():
    X, y, _ = blobs(40)
    given = dict(C=0.5, balance=0.5, tol=1e-9)
    by_class = SemiSupervisedMKLClassifier(BANK, class_weight={0: 1.0, 1: 5.0}, **given).fit(X, y)
    by_sample = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y, np.where(y == 1, 5.0, 1.0))
    plain = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y)
    values = by_class.decision_function(X)
    np.testing.assert_allclose(values, by_sample.decision_function(X), atol=1e-6)
    assert np.abs(values - plain.decision_function(X)).max() > 0.01


def test_weights_of_unlabelled_samples_multiply_their_price():
    X, y, _ = blobs(40)
    given = dict(balance=0.5, tol=1e-9)
    weighed = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y, np.where(y < 0, 5.0, 1.0))
    dear = SemiSupervisedMKLClassifier(BANK, C_unlabeled=0.5, **given).fit(X, y)
    plain = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y)
    values = weighed.decision_function(X)
    np.testing.assert_allclose(values, dear.decision_function(X), atol=1e-6)
    assert np.abs(values - plain.decision_function(X)).max() > 0.01


@pytest.mark.parametrize(
    ("places", "share", "centred"),
    [
        ((5.0, 8.0), 0.5, True),  # both on one side of the origin: only centred data fall on two
        ((-1.0, 1.0), 0.15, False),  # the origin lies between them, the mean among the negatives
    ],
)
def test_cross_validation_finds_whether_to_centre(rng, places, share, centred):
    truth = (np.arange(60) < 60 * share).astype(int)
    X = (np.where(truth == 1, places[1], places[0]) + 0.4 * rng.normal(size=60))[:, None]
    y = np.where(np.arange(60) % 2 == 0, truth, -1)
    bank = KernelBank([Linear()])
    model = SemiSupervisedMKLClassifier(bank, centering="cv", max_rounds=2).fit(X, y)
    assert model.centered_ == centred
    right = {
        centre: np.mean(SemiSupervisedMKLClassifier(bank, centering=centre).fit(X, y).predict(X) == truth)
        for centre in (True, False)
    }
    assert right[centred] > right[not centred] + 0.1  # and it is the better one


@pytest.mark.parametrize("theta", [1.0, 1.2, 3.0])
def test_theta_caps_the_candidates_of_bags(theta):
    bags, y = witness_bags(12)
    given = dict(ambiguity="output", C=1.0, threshold="zero")
    free = MultiInstanceMKLClassifier(FIXED, theta=None, **given).fit(bags, y).candidate_weights_
    weights = MultiInstanceMKLClassifier(FIXED, theta=theta, **given).fit(bags, y).candidate_weights_
    assert len(weights) > 2
    assert free.max() > 3.0 / len(free)  # without a cap one candidate has more than any of these
    assert weights.max() <= theta / len(weights) + 1e-6
    if theta == 1.0:
        np.testing.assert_allclose(weights, 1.0 / len(weights), rtol=1e-6)  # all alike


@pytest.mark.parametrize("theta", [None, 1.2])
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_the_certificate_of_clusters_encloses_the_conic_optimum(theta, C):
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = MKLClusterer(FIXED, C=C, theta=theta, max_rounds=3, tol=1e-6).fit(X)
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    K /= np.trace(K) / 20
    T = len(model.candidates_)
    assert T > 1
    explicit = [weak.input_output_kernel(K, row[0].astype(float)) for row in model.candidates_]
    cap = 1.0 if theta is None else theta / T
    optimum = weak.inner_optimum(explicit, [[t] for t in range(T)], np.full(20, C), cap)
    assert model.certificate_.lower - 1e-6 <= optimum <= model.certificate_.upper + 1e-6
    assert model.duality_gap_ <= 1e-6


def test_guessing_labels_goes_on_until_they_are_the_machines_own():
    bags, y = witness_bags()
    start = SingleInstanceMKLClassifier(FIXED, threshold="zero").fit(bags, y)
    model = InstanceLabelMKLClassifier(FIXED, threshold="zero").fit(bags, y)

    def other_positives(fitted):
        labels = [part for part, label in zip(fitted.predict_instances(bags), y, strict=True) if label]
        return np.mean(np.concatenate([np.delete(part, 1) for part in labels]))

    assert 1 < model.n_rounds_ < 20
    assert other_positives(start) > 0.4  # every instance took the label of its bag
    assert other_positives(model) < 0.1  # only the witness keeps it
    capped = InstanceLabelMKLClassifier(FIXED, threshold="zero", max_rounds=1).fit(bags, y)
    np.testing.assert_allclose(capped.decision_function(bags), start.decision_function(bags))


def test_of_equally_good_cuts_the_one_in_the_widest_gap_is_taken():
    signs = np.array([-1.0, 1.0, -1.0, 1.0])
    assert best_cut(np.array([0.0, 1.0, 2.0, 10.0]), signs, np.ones(4)) == 6.0
    assert best_cut(np.array([-7.0, 1.0, 2.0, 3.0]), signs, np.ones(4)) == -3.0


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("balance", [0.25, (0.2, 0.3), 0.75])
def test_the_balance_is_the_share_of_cluster_1_whatever_comes_first(order, balance):
    X = np.r_[
        np.random.default_rng(0).normal(size=(45, 2)), 6 + np.random.default_rng(1).normal(size=(15, 2))
    ]
    model = MKLClusterer(BANK, balance=balance).fit(X[::order])
    share = np.mean(model.labels_ == 1)
    assert np.min(balance) <= share <= np.max(balance)
    np.testing.assert_array_equal(model.predict(X[::order]), model.labels_)


def test_the_first_sample_is_in_cluster_0_where_the_balance_allows_it():
    X, _, truth = blobs(40)
    for first in (0, 1):
        order = np.argsort(truth != first, kind="stable")
        labels = MKLClusterer(BANK).fit(X[order]).labels_
        np.testing.assert_array_equal(labels, (truth[order] != first).astype(int))


@pytest.mark.parametrize("balance", [0.04, (0.01, 0.04), 0.97, (0.96, 0.99)])
def test_every_cluster_has_a_sample(balance):
    X, _, _ = blobs(10)
    labels = MKLClusterer(BANK, balance=balance).fit(X).labels_
    assert (labels == 1).sum() == (1 if np.max(balance) < 0.5 else 9)


def test_folds_of_the_threshold_may_be_given():
    bags, y = witness_bags(18)
    given = dict(centering=False, random_state=3)
    splitter = StratifiedKFold(3, shuffle=True, random_state=3)
    number, folds, pairs = (
        InstanceLabelMKLClassifier(FIXED, cv=cv, **given).fit(bags, y)
        for cv in (3, splitter, list(splitter.split(y, y)))
    )
    assert number.threshold_ == folds.threshold_ == pairs.threshold_
    assert number.threshold_ != InstanceLabelMKLClassifier(FIXED, cv=2, **given).fit(bags, y).threshold_


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv must be a whole number of at least 2; got 1"),
        (True, "cv must be a number of folds from 2 on, a splitter or pairs of indices; got True"),
        ("three", "cv must be a number of folds from 2 on, a splitter or pairs of indices; got 'three'"),
        (ShuffleSplit(2, random_state=0), "hold every sample out exactly once"),
    ],
)
def test_other_folds_are_refused(cv, message):
    bags, y = witness_bags(8)
    with pytest.raises(ValueError, match=message):
        WitnessMKLClassifier(FIXED, cv=cv).fit(bags, y)


@pytest.mark.parametrize("Model", [InstanceLabelMKLClassifier, WitnessMKLClassifier])
def test_the_number_of_rounds_is_checked(Model):
    bags, y = witness_bags(8)
    with pytest.raises(ValueError, match="max_rounds must be a whole number of at least 1; got None"):
        Model(max_rounds=None).fit(bags, y)


@pytest.mark.parametrize("Model", BASELINES)
@pytest.mark.parametrize(("geometry", "what"), [("l2", "'l2'"), (LpBall, "the class LpBall")])
def test_a_word_for_a_geometry_is_refused(Model, geometry, what):
    bags, y = witness_bags(8)
    with pytest.raises(TypeError, match=rf"geometry must be a Geometry such as LpBall\(p=2\); got {what}"):
        Model(geometry=geometry).fit(bags, y)


@pytest.mark.parametrize("Model", EVERY)
def test_a_class_of_one_bag_leaves_no_choice_of_the_threshold(Model):
    bags, _ = witness_bags(8)
    y = np.r_[0, 1, np.zeros(6, int)]
    with pytest.warns(UserWarning, match="one class has a single bag: scores are cut at zero"):
        model = Model(FIXED).fit(bags, y)
    assert model.threshold_ == 0.0
    assert Model(FIXED, threshold="zero").fit(bags, y).threshold_ == 0.0  # nothing to warn of


@pytest.mark.parametrize(
    ("centers", "balance", "total"),
    [
        (2, {0: 0.9, 1: 0.9}, "1.8"),
        (2, {0: 0.2, 1: (0.1, 0.3)}, "between 0.3 and 0.5"),
        (3, {0: 0.9, 1: 0.9, 2: 0.9}, "2.7"),
        (3, {0: "auto", 1: 0.6, 2: 0.6}, "between 1.2 and 2.2"),
    ],
)
def test_shares_of_all_classes_must_sum_to_one(centers, balance, total):
    X, y, _ = blobs(30, told=9, centers=centers)
    with pytest.raises(ValueError, match=f"balance must sum to 1, but they sum to {total}"):
        SemiSupervisedMKLClassifier(BANK, balance=balance).fit(X, y)


@pytest.mark.parametrize("balance", [{0: 0.33, 1: 0.33, 2: 0.33}, {0: "auto", 1: (0.2, 0.5), 2: 0.3}])
def test_shares_that_may_sum_to_one_are_taken(balance):
    X, y, _ = blobs(30, told=9, centers=3)
    model = SemiSupervisedMKLClassifier(BANK, balance=balance, max_rounds=1).fit(X, y)
    assert model.balance_[2] == pytest.approx(balance[2], abs=0.5 / 21)


@pytest.mark.parametrize("Model", EVERY)
def test_an_array_of_tables_is_a_list_of_bags(Model):
    bags, y = witness_bags(12)
    array = np.empty(12, dtype=object)
    array[:] = bags
    model = Model(FIXED).fit(bags, y)
    again = clone(model).fit(array, y)
    np.testing.assert_array_equal(again.decision_function(array), model.decision_function(bags))
    assert np.isfinite(cross_val_score(Model(FIXED), array, y, cv=2)).all()


BAD_FITS = {
    "semi-supervised": (
        SemiSupervisedMKLClassifier(BANK, balance=0.4),
        lambda: blobs(30, told=6)[:2],
        lambda: blobs(30, told=6, centers=3)[:2],  # beyond two classes a mapping is needed
    ),
    "clusterer": (MKLClusterer(BANK), lambda: blobs(20)[:1], lambda: (np.zeros((1, 2)),)),
    **{
        Model.__name__: (
            Model(FIXED),
            lambda: witness_bags(8),
            lambda: (witness_bags(8)[0], np.arange(8) % 3),
        )
        for Model in EVERY
    },
}


@pytest.mark.parametrize("name", BAD_FITS)
def test_a_failed_fit_leaves_no_half_of_an_old_model(name):
    model, good, bad = BAD_FITS[name]
    model = clone(model).fit(*good())
    with pytest.raises(ValueError):
        model.fit(*bad())
    with pytest.raises(NotFittedError):
        model.predict(good()[0])
