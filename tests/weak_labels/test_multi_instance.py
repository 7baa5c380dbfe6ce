"""Bags: how they slice, what is learnt from them, the threshold that all classifiers of bags share."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold, cross_val_score
from tests.reference import weak
from tests.weak_labels.data import BAG_CLASSIFIERS, BANK, FIXED, FIXED_TWO, bag_problem, witness_bags

from kernelweave import (
    Bags,
    InstanceLabelMKLClassifier,
    KernelBank,
    MultiInstanceMKLClassifier,
    SetKernelMKLClassifier,
    Views,
    WitnessMKLClassifier,
)
from kernelweave.kernels import Linear
from kernelweave.weak_labels import InputOutputCuttingPlane, multi_instance
from kernelweave.weak_labels.multi_instance import (
    best_cut,
    instance_label_fits,
    key_instance_fits,
)


def test_bags_slice_like_one_array():
    bags, _ = witness_bags(6)
    X = np.concatenate(bags)
    ids = np.repeat(["f", "e", "d", "c", "b", "a"], [len(b) for b in bags])
    whole = Bags(X, ids)
    assert (len(whole), whole.shape) == (6, (6, 3))
    assert list(whole.ids) == ["a", "b", "c", "d", "e", "f"]
    some = whole[[5, 0, 5]]
    np.testing.assert_array_equal(some.instances, np.concatenate([bags[0], bags[5], bags[0]]))
    np.testing.assert_array_equal(whole[np.arange(6) < 2].instances, np.concatenate([bags[5], bags[4]]))
    assert [part.size for part in some.split(np.arange(some.sizes.sum()))] == some.sizes.tolist()
    with pytest.raises(TypeError, match=r"bags\.instances"):
        np.asarray(whole)


def test_the_order_of_the_instances_does_not_matter(rng):
    bags, y = witness_bags()
    X, ids = np.concatenate(bags), np.repeat(np.arange(30), [len(b) for b in bags])
    order = rng.permutation(len(X))
    a = MultiInstanceMKLClassifier(BANK, tol=1e-8).fit(Bags(X, ids), y)
    b = MultiInstanceMKLClassifier(BANK, tol=1e-8).fit(Bags(X[order], ids[order]), y)
    np.testing.assert_allclose(a.decision_function(bags), b.decision_function(bags), atol=1e-6)


@pytest.mark.parametrize("ambiguity", ["input", "output"])
@pytest.mark.parametrize("theta", [None, 1.2])
def test_the_witnesses_are_found(ambiguity, theta):
    bags, y = witness_bags()
    model = MultiInstanceMKLClassifier(BANK, ambiguity=ambiguity, theta=theta).fit(bags, y)
    assert (model.key_instances_[y == 1] == 1).all()
    assert (model.key_instances_[y == 0] == -1).all()
    assert model.duality_gap_ <= 1e-3
    new, truth = witness_bags(40, seed=1)
    assert model.score(new, truth) > 0.9
    values = model.instance_decision_function(new)
    np.testing.assert_allclose([part.max() for part in values], model.decision_function(new))
    labels = model.predict_instances(new)
    assert [part.size for part in labels] == [len(bag) for bag in new]
    assert model.combined_kernel(new[:2], new[:3]).shape == (
        sum(map(len, new[:2])),
        sum(map(len, new[:3])),
    )


def test_a_share_of_positives_is_kept():
    bags, y = witness_bags()
    model = MultiInstanceMKLClassifier(BANK, ambiguity="output", positive_share=0.5).fit(bags, y)
    for bag, label, places in zip(
        bags, y, np.split(np.arange(sum(map(len, bags))), np.cumsum([len(b) for b in bags])[:-1]), strict=True
    ):
        positives = (model.candidates_[:, :, places] == 1).sum(axis=2)
        assert (positives == 0).all() if label == 0 else (positives >= np.ceil(0.5 * len(bag))).all()
    several = MultiInstanceMKLClassifier(BANK, positive_share=0.4).fit(bags, y)
    assert several.score(bags, y) > 0.9


@pytest.mark.parametrize("theta", [1.0, 1.2, 2.0])
def test_theta_caps_the_candidates_of_bags(theta):
    bags, y = witness_bags(12)
    given = dict(ambiguity="output", C=1.0, threshold="zero")
    free = MultiInstanceMKLClassifier(FIXED, theta=None, **given).fit(bags, y).candidate_weights_
    weights = MultiInstanceMKLClassifier(FIXED, theta=theta, **given).fit(bags, y).candidate_weights_
    assert len(weights) > 2
    assert free.max() > 2.0 / len(free)  # without a cap one candidate has more than any of these
    assert weights.max() <= theta / len(weights) + 1e-6
    if theta == 1.0:
        np.testing.assert_allclose(weights, 1.0 / len(weights), rtol=1e-6)  # all alike


@pytest.mark.parametrize("share", [None, 0.6])
def test_the_certificate_for_bags_encloses_the_conic_optimum(share):
    problem = bag_problem(rbf_kernel, 10, C=10.0)
    (K,), members, signs, C = problem.grams, problem.members, problem.signs, problem.C
    plane = InputOutputCuttingPlane(theta=1.2, max_rounds=3, violation_tol=0.0)
    *_, fit = key_instance_fits(plane, problem, share, "mean")
    outcome = fit.cutting_plane
    places, count, explicit = [], 0, []
    for bag, sign in zip(members, signs, strict=True):
        size = len(bag) if sign > 0 else 1
        places.append(range(count, count + size))
        count += size
    for (candidate,) in outcome.candidates:
        chosen = [
            [bag[j - own[0]] for j in own if candidate[j]] if sign > 0 else list(bag)
            for bag, own, sign in zip(members, places, signs, strict=True)
        ]
        explicit.append(weak.bag_kernel(K, chosen, signs))
    T = len(explicit)
    optimum = weak.inner_optimum(explicit, [[t] for t in range(T)], C, 1.2 / T)
    certificate = outcome.result.certificate
    assert certificate.lower - 1e-7 <= optimum <= certificate.upper + 1e-7
    # A negative bag is the mean of its instances: so is its value in the SVM.
    values = K @ fit.coef[0]
    Q = sum(w[0] * B for w, B in zip(outcome.candidate_weights, explicit, strict=True))
    for bag, sign, f in zip(members, signs, signs * (Q @ outcome.alpha), strict=True):
        if sign < 0:
            assert values[bag].mean() == pytest.approx(f, abs=1e-9)


def test_the_certificate_for_instance_labels_encloses_the_conic_optimum():
    problem = bag_problem(rbf_kernel, 6, C=10.0)
    *_, fit = instance_label_fits(InputOutputCuttingPlane(max_rounds=3), problem, share=None)
    (K,) = problem.grams
    explicit = [weak.input_output_kernel(K, row[0].astype(float)) for row in fit.cutting_plane.candidates]
    optimum = weak.inner_optimum(explicit, [[t] for t in range(len(explicit))], np.full(len(K), 10.0), 1.0)
    certificate = fit.result.certificate
    assert certificate.lower - 1e-7 <= optimum <= certificate.upper + 1e-7


def test_the_threshold_makes_the_fewest_errors(rng):
    for _ in range(50):
        n = int(rng.integers(2, 12))
        scores, signs = rng.integers(0, 6, n) / 2.0, rng.choice([-1.0, 1.0], n)
        weight = rng.random(n) + 0.1
        cut = best_cut(scores, signs, weight)
        errors = weight[(scores > cut) != (signs > 0)].sum()
        every = [weight[(scores > c) != (signs > 0)].sum() for c in np.r_[scores - 0.25, scores.max() + 1]]
        assert errors == pytest.approx(min(every))


def test_of_equally_good_cuts_the_one_in_the_widest_gap_is_taken():
    signs = np.array([-1.0, 1.0, -1.0, 1.0])
    assert best_cut(np.array([0.0, 1.0, 2.0, 10.0]), signs, np.ones(4)) == 6.0
    assert best_cut(np.array([-7.0, 1.0, 2.0, 3.0]), signs, np.ones(4)) == -3.0


def test_errors_of_held_out_bags_count_by_their_price(monkeypatch):
    bags, y = witness_bags(12)
    weight = np.r_[0.0, np.linspace(0.5, 2.0, 11)]
    found = []
    monkeypatch.setattr(multi_instance, "best_cut", lambda *given: found.append(given) or 0.0)
    model = SetKernelMKLClassifier(FIXED, C=3.0, class_weight={0: 1.0, 1: 2.0}).fit(bags, y, weight)
    ((_, signs, price),) = found
    np.testing.assert_array_equal(signs, np.where(y == 1, 1.0, -1.0)[1:])
    np.testing.assert_allclose(price, 3.0 * (weight * (1.0 + y))[1:])
    assert model.threshold_ == 0.0


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
        (ShuffleSplit(2, random_state=0), "hold every sample out, and all equally often"),
    ],
)
def test_other_folds_are_refused(cv, message):
    bags, y = witness_bags(8)
    with pytest.raises(ValueError, match=message):
        WitnessMKLClassifier(FIXED, cv=cv).fit(bags, y)


@pytest.mark.parametrize("Model", BAG_CLASSIFIERS)
def test_a_class_of_one_bag_leaves_no_choice_of_the_threshold(Model):
    bags, _ = witness_bags(8)
    y = np.r_[0, 1, np.zeros(6, int)]
    with pytest.warns(UserWarning, match="one class has a single bag: scores are cut at zero"):
        model = Model(FIXED).fit(bags, y)
    assert model.threshold_ == 0.0
    assert Model(FIXED, threshold="zero").fit(bags, y).threshold_ == 0.0  # nothing to warn of


@pytest.mark.parametrize("Model", BAG_CLASSIFIERS)
def test_bags_of_weight_zero_change_nothing(Model):
    bags, y = witness_bags(24)
    y[[2, 4, 6]] = 1  # wrong, and they would decide about the folds and the threshold
    used = ~np.isin(np.arange(24), [2, 4, 6, 7])
    model = Model(FIXED_TWO, centering=False, tol=1e-9)
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
        MultiInstanceMKLClassifier(FIXED_TWO, **given).fit(bags, labels, sample_weight=w).centered_
        for labels, w in ((y, None), (even, None), (even, weight))
    ]
    assert centred == [False, True, False]


def test_bags_live_among_scikit_learns_tools():
    bags, y = witness_bags()
    sizes = [len(b) for b in bags]
    held = Bags(np.concatenate(bags), np.repeat(np.arange(30), sizes))
    a = cross_val_score(MultiInstanceMKLClassifier(BANK), bags, y, cv=3)
    b = cross_val_score(MultiInstanceMKLClassifier(BANK), held, y, cv=3)
    np.testing.assert_array_equal(a, b)
    search = GridSearchCV(MultiInstanceMKLClassifier(BANK), {"C": [1.0, 10.0]}, cv=2).fit(held, y)
    assert search.best_score_ > 0.8
    model = search.best_estimator_
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).decision_function(bags), model.decision_function(bags)
    )


def test_frames_views_and_sparse_instances():
    bags, y = witness_bags(16)
    X, ids = np.concatenate(bags), np.repeat(np.arange(16), [len(b) for b in bags])
    plain = MultiInstanceMKLClassifier(KernelBank([Linear()])).fit(bags, y).decision_function(bags)
    frames = [pd.DataFrame(bag, columns=list("abc")) for bag in bags]
    named = MultiInstanceMKLClassifier(KernelBank([Linear()])).fit(frames, y)
    np.testing.assert_allclose(named.decision_function(frames), plain)
    assert list(named.feature_names_in_) == ["a", "b", "c"]
    csr = Bags(sparse.csr_array(X), ids)
    thin = MultiInstanceMKLClassifier(KernelBank([Linear()])).fit(csr, y)
    np.testing.assert_allclose(thin.decision_function(csr), plain, atol=1e-8)
    views = Bags(Views({"u": X[:, :1], "v": X[:, 1:]}), ids)
    assert MultiInstanceMKLClassifier(KernelBank.per_view()).fit(views, y).score(views, y) > 0.8


@pytest.mark.parametrize("Model", BAG_CLASSIFIERS)
def test_an_array_of_tables_is_a_list_of_bags(Model):
    bags, y = witness_bags(12)
    array = np.empty(12, dtype=object)
    array[:] = bags
    model = Model(FIXED).fit(bags, y)
    again = clone(model).fit(array, y)
    np.testing.assert_array_equal(again.decision_function(array), model.decision_function(bags))
    assert np.isfinite(cross_val_score(Model(FIXED), array, y, cv=2)).all()


@pytest.mark.parametrize("Model", [MultiInstanceMKLClassifier, SetKernelMKLClassifier])
def test_errors_of_bags_say_what_would_work(Model):
    bags, y = witness_bags(8)
    with pytest.raises(ValueError, match="Bag 2 is empty"):
        Model().fit([*bags[:2], np.empty((0, 3)), *bags[3:]], y)
    with pytest.raises(ValueError, match="bag 0 has 3 and bag 1 has 2 columns"):
        Model().fit([bags[0], bags[1][:, :2], *bags[2:]], y)
    with pytest.raises(ValueError, match="one bag id per instance"):
        Bags(np.concatenate(bags), np.zeros(3))
    with pytest.raises(ValueError, match="8 samples but y has 7"):
        Model().fit(bags, y[:7])
    with pytest.raises(ValueError, match="1 class"):
        Model().fit(bags, np.ones(8))
    with pytest.raises(ValueError, match="Only binary classification"):
        Model().fit(bags, np.arange(8) % 3)
    with pytest.raises(ValueError, match="precomputed"):
        Model("precomputed").fit(bags, y)
    with pytest.raises(ValueError, match="threshold must be"):
        Model(threshold="best").fit(bags, y)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, "half"])
def test_an_impossible_share_of_positives_is_refused(share):
    bags, y = witness_bags(8)
    with pytest.raises(ValueError, match="positive_share must be a number above 0 and at most 1"):
        MultiInstanceMKLClassifier(positive_share=share).fit(bags, y)
