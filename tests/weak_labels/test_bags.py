"""Bags: how they slice, what is learnt from them, and the baselines beside it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.reference import weak

from kernelweave import (
    Bags,
    InstanceLabelMKLClassifier,
    KernelBank,
    MultiInstanceMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    Views,
    WitnessMKLClassifier,
)
from kernelweave.kernels import Gaussian, Laplacian, Linear
from kernelweave.learners import Hinge
from kernelweave.solvers import Newton
from kernelweave.weak_labels.bag_classifier import best_cut
from kernelweave.weak_labels.bag_learning import learn_keys, learn_labels
from kernelweave.weak_labels.bag_machines import Trainer, guessed_witnesses, set_kernel

BANK = KernelBank([Gaussian(), Laplacian()])
BASELINES = [
    SingleInstanceMKLClassifier,
    InstanceLabelMKLClassifier,
    WitnessMKLClassifier,
    SetKernelMKLClassifier,
]


def witness_bags(n=30, seed=0):
    """Bags of 2 to 5 instances; in positive ones instance number 1 lies elsewhere."""
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(rng.integers(2, 6), 3)) for _ in range(n)]
    y = np.arange(n) % 2
    for bag in bags[1::2]:
        bag[1] += 4.0
    return bags, y


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
    a = MultiInstanceMKLClassifier(BANK).fit(Bags(X, ids), y)
    b = MultiInstanceMKLClassifier(BANK).fit(Bags(X[order], ids[order]), y)
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


@pytest.mark.parametrize("share", [None, 0.6])
def test_the_certificate_for_bags_encloses_the_conic_optimum(share):
    bags, y = witness_bags(10)
    X = np.concatenate(bags)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 6)
    members = np.split(np.arange(len(X)), np.cumsum([len(b) for b in bags])[:-1])
    signs, C = np.where(y == 1, 1.0, -1.0), np.full(10, 10.0)
    outcome, coef = learn_keys([K], members, signs, C, share, theta=1.2, max_rounds=3, violation_tol=0.0)
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
    # The classifier's values of the key instances are what the machine sees.
    values = K @ coef[0]
    seen = signs * (sum(w[0] * B for w, B in zip(outcome.weights, explicit, strict=True)) @ outcome.alpha)
    for bag, sign, f in zip(members, signs, seen, strict=True):
        if sign < 0:
            assert values[bag].mean() == pytest.approx(f, abs=1e-9)


def test_the_certificate_for_instance_labels_encloses_the_conic_optimum():
    bags, y = witness_bags(6)
    X = np.concatenate(bags)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 6)
    members = np.split(np.arange(len(X)), np.cumsum([len(b) for b in bags])[:-1])
    signs = np.where(y == 1, 1.0, -1.0)
    outcome, _ = learn_labels([K], members, signs, np.full(6, 10.0), theta=None, max_rounds=3)
    explicit = [weak.input_output_kernel(K, row[0].astype(float)) for row in outcome.candidates]
    optimum = weak.inner_optimum(explicit, [[t] for t in range(len(explicit))], np.full(len(X), 10.0), 1.0)
    certificate = outcome.result.certificate
    assert certificate.lower - 1e-7 <= optimum <= certificate.upper + 1e-7


@pytest.mark.parametrize("Model", BASELINES)
def test_baselines_have_the_same_interface(Model):
    bags, y = witness_bags()
    model = Model(BANK, C=10.0).fit(bags, np.array(["no", "yes"])[y])
    assert model.duality_gap_ <= 1e-3
    assert model.score(bags, np.array(["no", "yes"])[y]) > 0.85
    pooled = [model.pool(part) for part in model.instance_decision_function(bags)]
    np.testing.assert_allclose(pooled, model.decision_function(bags))
    assert model.kernel_weights_.shape == (2,)
    assert cross_val_score(clone(model), bags, y, cv=2).mean() > 0.7


def test_the_set_kernel_is_the_machine_on_mean_values():
    bags, y = witness_bags(12)
    X = np.concatenate(bags)
    K = X @ X.T
    members = np.split(np.arange(len(X)), np.cumsum([len(b) for b in bags])[:-1])
    signs = np.where(y == 1, 1.0, -1.0)
    fit = set_kernel(Trainer(Hinge(), KernelGeometry(), Newton(tol=1e-8)), [K], members, signs, np.ones(12))
    B = weak.bag_kernel(K, members, np.ones(12))
    from sklearn.svm import SVC

    svc = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(B, signs)
    ours = [fit.values([K], bag).mean() for bag in members]
    np.testing.assert_allclose(ours, svc.decision_function(B), atol=1e-4)


def KernelGeometry():
    from kernelweave.geometry import Uniform

    return Uniform()


def test_witnesses_settle_on_the_highest_instances():
    bags, y = witness_bags(12)
    X = np.concatenate(bags)
    members = np.split(np.arange(len(X)), np.cumsum([len(b) for b in bags])[:-1])
    signs = np.where(y == 1, 1.0, -1.0)
    fit = guessed_witnesses(Trainer(Hinge(C=10.0), KernelGeometry()), [X @ X.T], members, signs, np.ones(12))
    assert all(fit.values([X @ X.T], members[bag]).argmax() == 1 for bag in np.flatnonzero(y == 1))
    assert fit.n_rounds < 20


def test_the_threshold_makes_the_fewest_errors(rng):
    for _ in range(50):
        n = int(rng.integers(2, 12))
        scores, signs = rng.integers(0, 6, n) / 2.0, rng.choice([-1.0, 1.0], n)
        weight = rng.random(n) + 0.1
        cut = best_cut(scores, signs, weight)
        errors = weight[(scores > cut) != (signs > 0)].sum()
        every = [weight[(scores > c) != (signs > 0)].sum() for c in np.r_[scores - 0.25, scores.max() + 1]]
        assert errors == pytest.approx(min(every))


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
