"""Semi-supervised classification and clustering: labels, limits, errors, life among scikit-learn's tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from kernelweave import KernelBank, MKLClusterer, SemiSupervisedMKLClassifier, Views, presets
from kernelweave.kernels import Gaussian, Laplacian, Linear

BANK = KernelBank([Gaussian(), Laplacian()])


def blobs(n=80, told=8, centers=2, seed=0):
    X, truth = make_blobs(n, centers=[[-2.5, 0], [2.5, 0], [0, 5]][:centers], random_state=seed)
    y = np.full(n, -1)
    for c in range(centers):
        places = np.flatnonzero(truth == c)[: told // centers]
        y[places] = truth[places]
    return X, y, truth


@pytest.mark.parametrize("theta", [None, 1.2, 4.0])
def test_unlabelled_samples_are_labelled_with_a_certificate(theta):
    X, y, truth = blobs()
    model = SemiSupervisedMKLClassifier(BANK, theta=theta).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.95
    assert (model.transduction_[y >= 0] == truth[y >= 0]).all()
    assert model.duality_gap_ <= 1e-3
    assert model.certificate_.lower <= model.certificate_.upper
    T, M, n = model.candidates_.shape
    assert (M, n) == (2, 80)
    assert model.candidate_weights_.shape == (T, M)
    lengths = np.linalg.norm(model.candidate_weights_, axis=1)
    assert lengths.sum() <= 1 + 1e-6
    assert lengths.max() <= (1.0 if theta is None else theta / T) + 1e-6
    known = y >= 0
    assert (model.candidates_[:, :, known] == np.where(y[known] == 1, 1, -1)).all()
    share, error = 0.5, np.sqrt(0.25 / known.sum())
    positives = (model.candidates_[:, :, ~known] == 1).mean(axis=2)
    assert (np.abs(positives - share) <= error + 0.5 / (~known).sum()).all()
    assert model.stopped_ in ("no violated candidate", "repeated candidate", "round cap")
    np.testing.assert_allclose(model.kernel_weights_, model.candidate_weights_.sum(axis=0))


def test_new_samples_are_predicted_as_the_formula_says():
    X, y, truth = blobs()
    model = SemiSupervisedMKLClassifier(KernelBank([Linear()]), centering=False).fit(X, y)
    Z = np.random.default_rng(1).normal(size=(7, 2))
    scale = np.mean(np.sum(X**2, axis=1))
    alpha = np.zeros(len(X))
    alpha[model.support_] = model.dual_coef_[0]
    slow = [
        sum(
            alpha[i] * model.candidate_weights_[t, 0] * model.candidates_[t, 0, i] * (z @ X[i]) / scale
            for i in range(len(X))
            for t in range(len(model.candidates_))
        )
        for z in Z
    ]
    np.testing.assert_allclose(model.decision_function(Z), slow, rtol=1e-8, atol=1e-10)
    assert np.mean(model.predict(X) == truth) > 0.9


def test_training_samples_seen_again_get_their_transduction():
    X, y, _ = blobs()
    model = SemiSupervisedMKLClassifier(BANK).fit(X, y)
    free = y < 0
    np.testing.assert_array_equal(model.predict(X)[free], model.transduction_[free])


def test_words_are_labels_and_minus_one_among_them_is_none():
    X, y, truth = blobs()
    words = np.array(["cat", "dog"], dtype=object)
    mixed = np.where(y < 0, -1, words[y]).astype(object)
    as_text = np.array([str(label) for label in mixed])
    model = SemiSupervisedMKLClassifier(BANK).fit(X, mixed)
    assert set(model.transduction_) == {"cat", "dog"}
    assert np.mean(model.transduction_ == words[truth]) > 0.95
    again = SemiSupervisedMKLClassifier(BANK).fit(X, as_text)
    np.testing.assert_array_equal(model.transduction_, again.transduction_)


def test_three_classes_one_against_the_rest():
    X, y, truth = blobs(120, told=12, centers=3)
    model = SemiSupervisedMKLClassifier(BANK).fit(X, y)
    assert model.kernel_weights_.shape == (3, 2)
    assert model.decision_function(X).shape == (120, 3)
    assert np.mean(model.transduction_ == truth) > 0.9
    given = SemiSupervisedMKLClassifier(BANK, balance={0: 1 / 3, 1: 1 / 3, 2: 1 / 3}).fit(X, y)
    assert np.mean(given.transduction_ == truth) > 0.9


def test_frames_and_views_are_read_by_name():
    X, y, _ = blobs()
    frame = pd.DataFrame(X, columns=["left", "right"])
    bank = KernelBank.per_view(views={"a": ["left"], "b": ["right"]})
    model = SemiSupervisedMKLClassifier(bank).fit(frame, y)
    assert [name.split("·")[0] for name in model.kernel_names_] == ["a", "b"]
    views = Views({"a": X[:, :1], "b": X[:, 1:]})
    other = SemiSupervisedMKLClassifier(KernelBank.per_view()).fit(views, y)
    np.testing.assert_allclose(model.decision_function(frame), other.decision_function(views))
    np.testing.assert_allclose(
        model.combined_kernel(frame.iloc[:5], frame), model.combined_kernel(frame.iloc[:5]), atol=1e-10
    )


def test_precomputed_kernels_give_the_same_model():
    X, y, _ = blobs()
    K = X @ X.T
    ready = SemiSupervisedMKLClassifier("precomputed").fit([K, K**2], y)
    assert ready.decision_function([K[:3], K[:3] ** 2]).shape == (3,)
    lone = SemiSupervisedMKLClassifier("precomputed").fit([K], y)
    linear = SemiSupervisedMKLClassifier(KernelBank([Linear()])).fit(X, y)
    np.testing.assert_allclose(lone.decision_function([K]), linear.decision_function(X), atol=1e-8)


def test_all_samples_labelled_is_the_supervised_machine():
    X, _, truth = blobs()
    model = SemiSupervisedMKLClassifier(BANK).fit(X, truth)
    assert len(model.candidates_) == 1
    assert np.mean(model.predict(X) == truth) > 0.97


def test_a_sample_of_weight_zero_has_no_say():
    X, y, _ = blobs()
    weight = np.ones(len(X))
    wrong = np.flatnonzero(y == 1)[0]
    y_wrong = y.copy()
    y_wrong[wrong], weight[wrong] = 0, 0.0
    model = SemiSupervisedMKLClassifier(BANK, balance=0.5).fit(X, y_wrong, sample_weight=weight)
    assert wrong not in model.support_
    heavy = SemiSupervisedMKLClassifier(BANK, class_weight={0: 1.0, 1: 5.0}).fit(X, y)
    assert heavy.duality_gap_ <= 1e-3


def test_the_threshold_may_sit_at_the_balance():
    X, y, _ = blobs()
    model = SemiSupervisedMKLClassifier(BANK, balance=0.25, threshold="balance").fit(X, y)
    free = y < 0
    assert (model.transduction_[free] == 1).sum() == round(0.25 * free.sum())


def test_an_interval_of_balances_bounds_the_count():
    X, y, _ = blobs()
    model = SemiSupervisedMKLClassifier(BANK, balance=(0.3, 0.6)).fit(X, y)
    positives = (model.candidates_[:, :, y < 0] == 1).mean(axis=2)
    assert ((positives >= 0.29) & (positives <= 0.61)).all()


@pytest.mark.parametrize("centering", ["cv", True, False])
def test_centring_can_be_chosen(centering):
    X, y, truth = blobs()
    model = SemiSupervisedMKLClassifier(BANK, centering=centering).fit(X, y)
    assert model.centered_ in (True, False) if centering == "cv" else model.centered_ == centering
    assert np.mean(model.transduction_ == truth) > 0.8


def test_centring_follows_the_balance_as_far_as_it_is_known():
    X, y, _ = blobs(told=20)
    few = y.copy()
    few[np.flatnonzero(y == 1)[3:]], few[np.flatnonzero(y == 0)[7:]] = -1, -1
    assert SemiSupervisedMKLClassifier(BANK, max_rounds=1).fit(X, y).centered_
    assert SemiSupervisedMKLClassifier(BANK, max_rounds=1).fit(X, few).centered_  # 3 of 10 may be even
    y[np.flatnonzero(y == 1)[2:]] = -1
    assert not SemiSupervisedMKLClassifier(BANK, max_rounds=1).fit(X, y).centered_  # 2 of 12 are not
    assert not SemiSupervisedMKLClassifier(BANK, max_rounds=1, balance=0.2).fit(X, few).centered_


def test_clones_pickles_and_searches():
    X, y, truth = blobs()
    model = clone(SemiSupervisedMKLClassifier(BANK, theta=2.0)).fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    search = GridSearchCV(SemiSupervisedMKLClassifier(BANK), {"theta": [1.2, None]}, cv=2).fit(X, truth)
    assert search.best_score_ > 0.9


def test_the_same_seed_gives_the_same_model():
    X, y, _ = blobs()
    first, second = (SemiSupervisedMKLClassifier(BANK, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.candidates_, second.candidates_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(y=np.full(80, -1)), "All samples are unlabelled"),
        (dict(y=np.r_[np.ones(5, int), np.full(75, -1)]), "1 class only.*-1 marks unlabelled"),
        (dict(y=np.zeros(79, int)), "80 samples but y has 79"),
        (dict(balance=0.0), "balance must be a share"),
        (dict(balance=1.2), "balance must be a share"),
        (dict(balance=(0.6, 0.4)), "balance must be a share"),
        (dict(balance={0: 0.5}), "no share for class"),
        (dict(theta=0.0), "theta must be"),
        (dict(C=-1.0), "C must be"),
        (dict(C_unlabeled=0.0), "C_unlabeled must be"),
        (dict(centering="maybe"), "centering must be"),
        (dict(threshold="half"), "threshold must be"),
        (dict(max_rounds=0), "max_rounds must be"),
    ],
)
def test_errors_say_what_would_work(change, message):
    X, y, _ = blobs()
    labels = change.pop("y", y)
    with pytest.raises(ValueError, match=message):
        SemiSupervisedMKLClassifier(BANK, **change).fit(X, labels)


def test_too_little_memory_is_said_before_it_is_taken():
    X, y, _ = blobs()
    with pytest.raises(MemoryError, match="memory_limit"):
        SemiSupervisedMKLClassifier(BANK, memory_limit=1000.0).fit(X, y)


def test_a_cap_on_machines_warns_with_the_gap():
    X, y, _ = blobs()
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        SemiSupervisedMKLClassifier(BANK, max_iter=1, tol=1e-8).fit(X, y)


def test_the_preset_is_the_thesis():
    assert presets.iokl(theta=2.0).theta == 2.0
    assert presets.iokl(theta=None).theta is None
    assert isinstance(presets.iokl(), SemiSupervisedMKLClassifier)


def test_two_moons_are_two_clusters():
    X, truth = make_moons(120, noise=0.05, random_state=0)
    bank = KernelBank([Gaussian(scale=s) for s in (16.0, 64.0)])
    model = MKLClusterer(bank, balance=0.5).fit(X)
    share = np.mean(model.labels_ == truth)
    assert max(share, 1 - share) > 0.95
    assert model.labels_[0] == 0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.duality_gap_ <= 1e-3
    assert pickle.loads(pickle.dumps(model)).labels_.tolist() == model.labels_.tolist()


def test_clusters_keep_the_balance():
    X, _, _ = blobs(60)
    labels = MKLClusterer(BANK, balance=0.25).fit(X).labels_
    assert (labels == 1).mean() == 0.25
    with pytest.raises(ValueError, match="balance must be"):
        MKLClusterer(BANK, balance=1.0).fit(X)
