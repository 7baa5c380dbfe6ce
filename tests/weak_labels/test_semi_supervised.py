"""Semi-supervised classification: labels, balance, weights, errors, life among scikit-learn's tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from tests.weak_labels.data import BANK, FIXED_TWO, blobs

from kernelweave import KernelBank, MKLClusterer, SemiSupervisedMKLClassifier, Views, presets
from kernelweave.kernels import Linear


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


def test_training_samples_are_predicted_as_their_transduction():
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
    X, y, truth = blobs(120, n_labelled=12, centers=3)
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


def test_with_all_labels_known_there_is_one_candidate():
    X, _, truth = blobs()
    model = SemiSupervisedMKLClassifier(BANK).fit(X, truth)
    assert len(model.candidates_) == 1
    assert np.mean(model.predict(X) == truth) > 0.97


def test_a_class_weight_is_a_weight_of_its_labelled_samples():
    X, y, _ = blobs(40)
    given = dict(C=0.5, balance=0.5, tol=1e-9)
    by_class = SemiSupervisedMKLClassifier(BANK, class_weight={0: 1.0, 1: 5.0}, **given).fit(X, y)
    by_sample = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y, np.where(y == 1, 5.0, 1.0))
    plain = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y)
    values = by_class.decision_function(X)
    np.testing.assert_allclose(values, by_sample.decision_function(X), atol=1e-6)
    assert np.abs(values - plain.decision_function(X)).max() > 0.01


def test_weights_of_unlabelled_samples_multiply_C_unlabeled():
    X, y, _ = blobs(40)
    given = dict(balance=0.5, tol=1e-9)
    weighed = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y, np.where(y < 0, 5.0, 1.0))
    larger = SemiSupervisedMKLClassifier(BANK, C_unlabeled=0.5, **given).fit(X, y)
    plain = SemiSupervisedMKLClassifier(BANK, **given).fit(X, y)
    values = weighed.decision_function(X)
    np.testing.assert_allclose(values, larger.decision_function(X), atol=1e-6)
    assert np.abs(values - plain.decision_function(X)).max() > 0.01


@pytest.mark.parametrize("centers", [2, 3])
@pytest.mark.parametrize("threshold", ["zero", "balance"])
def test_samples_of_weight_zero_change_nothing(centers, threshold):
    X, y, _ = blobs(45, n_labelled=18, centers=centers)
    weight = np.ones(45)
    weight[np.flatnonzero(y == 1)[:5]] = 0.0  # labelled ones: they would shift the balance
    weight[np.flatnonzero(y < 0)[:9]] = 0.0
    used = weight > 0.0
    model = SemiSupervisedMKLClassifier(
        FIXED_TWO, centering=False, threshold=threshold, tol=1e-9, max_rounds=3
    )
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
    X, y, _ = blobs(n_labelled=40)
    few = y.copy()
    few[np.flatnonzero(y == 1)[2:]] = -1
    weight = np.ones(len(y))
    weight[np.flatnonzero(y == 1)[2:]] = 0.0
    models = [
        SemiSupervisedMKLClassifier(FIXED_TWO, max_rounds=1).fit(X, labels, sample_weight=w).centered_
        for labels, w in ((y, None), (few, None), (y, weight))
    ]
    assert models == [True, False, False]


def test_labels_count_for_the_balance_by_their_weight():
    X, y, _ = blobs(60, n_labelled=20)
    heavy = SemiSupervisedMKLClassifier(FIXED_TWO, max_rounds=1).fit(X, y, np.where(y == 1, 3.0, 1.0))
    assert heavy.balance_[0] == pytest.approx(0.75, abs=0.02)
    plain = SemiSupervisedMKLClassifier(FIXED_TWO, max_rounds=1).fit(X, y)
    scaled = SemiSupervisedMKLClassifier(FIXED_TWO, max_rounds=1).fit(X, y, np.full(60, 1e-3))
    np.testing.assert_array_equal(scaled.balance_, plain.balance_)


def test_all_labels_of_weight_zero_are_an_error():
    X, y, _ = blobs(20)
    with pytest.raises(ValueError, match="All labelled samples have weight 0"):
        SemiSupervisedMKLClassifier(FIXED_TWO).fit(X, y, np.where(y < 0, 1.0, 0.0))
    with pytest.raises(ValueError, match=r"the weights of classes \[1\] sum to 0"):
        SemiSupervisedMKLClassifier(FIXED_TWO).fit(X, y, np.where(y == 1, 0.0, 1.0))


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
    X, y, _ = blobs(30, n_labelled=9, centers=centers)
    with pytest.raises(ValueError, match=f"balance must sum to 1, but they sum to {total}"):
        SemiSupervisedMKLClassifier(BANK, balance=balance).fit(X, y)


@pytest.mark.parametrize("balance", [{0: 0.33, 1: 0.33, 2: 0.33}, {0: "auto", 1: (0.2, 0.5), 2: 0.3}])
def test_shares_that_may_sum_to_one_are_taken(balance):
    X, y, _ = blobs(30, n_labelled=9, centers=3)
    model = SemiSupervisedMKLClassifier(BANK, balance=balance, max_rounds=1).fit(X, y)
    assert model.balance_[2] == pytest.approx(balance[2], abs=0.5 / 21)


@pytest.mark.parametrize("centering", ["cv", True, False])
def test_centring_can_be_chosen(centering):
    X, y, truth = blobs()
    model = SemiSupervisedMKLClassifier(BANK, centering=centering).fit(X, y)
    assert model.centered_ in (True, False) if centering == "cv" else model.centered_ == centering
    assert np.mean(model.transduction_ == truth) > 0.8


def test_centring_follows_the_balance_as_far_as_it_is_known():
    X, y, _ = blobs(n_labelled=20)
    few = y.copy()
    few[np.flatnonzero(y == 1)[3:]], few[np.flatnonzero(y == 0)[7:]] = -1, -1
    assert SemiSupervisedMKLClassifier(BANK, max_rounds=1).fit(X, y).centered_
    assert SemiSupervisedMKLClassifier(BANK, max_rounds=1).fit(X, few).centered_  # 3 of 10 may be even
    y[np.flatnonzero(y == 1)[2:]] = -1
    assert not SemiSupervisedMKLClassifier(BANK, max_rounds=1).fit(X, y).centered_  # 2 of 12 are not
    assert not SemiSupervisedMKLClassifier(BANK, max_rounds=1, balance=0.2).fit(X, few).centered_


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


def test_cross_validation_hides_every_label_once_for_each_choice(monkeypatch):
    X, y, _ = blobs(40, n_labelled=12)
    learn, calls = SemiSupervisedMKLClassifier._learn, []

    def spy(self, grams, labels, **how):
        calls.append(labels)
        return learn(self, grams, labels, **how)

    monkeypatch.setattr(SemiSupervisedMKLClassifier, "_learn", spy)
    SemiSupervisedMKLClassifier(BANK, centering="cv", balance=0.25, max_rounds=1).fit(X, y)
    *folds, final = calls
    np.testing.assert_array_equal(final.index, y)
    assert sum((labels.index < 0).astype(int) for labels in folds)[y >= 0].tolist() == [2] * 12
    for labels in folds:
        hidden = labels.index < 0
        assert not labels.known[hidden].any()
        assert (labels.C[hidden] == 0.1).all()
        (count,) = labels.counts
        assert (count.n, count.max_positives) == (hidden.sum(), round(0.25 * hidden.sum()))


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


def test_a_cap_on_iterations_warns_with_the_gap():
    X, y, _ = blobs()
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        SemiSupervisedMKLClassifier(BANK, max_iter=1, tol=1e-8).fit(X, y)


def test_the_preset_is_the_thesis():
    assert presets.iokl(theta=2.0).theta == 2.0
    assert presets.iokl(theta=None).theta is None
    assert isinstance(presets.iokl(), SemiSupervisedMKLClassifier)


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
