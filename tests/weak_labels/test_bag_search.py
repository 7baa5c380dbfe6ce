"""Settings of the multi-instance classifier by cross-validation: against a loop over plain classifiers."""

from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from tests.weak_labels.data import FIXED, witness_bags

from kernelweave import MultiInstanceMKLClassifier, MultiInstanceMKLClassifierCV
from kernelweave.weak_labels.multi_instance import best_cut

POOLS = {"max": np.max, "mean": np.mean, "softmax": lambda f: np.sum(np.exp(f) * f) / np.sum(np.exp(f))}


def noisy_bags(n=24, seed=0):
    """Bags of which every sixth has the wrong label."""
    bags, y = witness_bags(n, seed)
    y = y.copy()
    y[::6] = 1 - y[::6]
    return bags, y


def naive_scores(bags, y, folds, **setting):
    """Return the held-out scores of bags by a classifier for every fold."""
    scores = np.empty(len(bags))
    for train, test in folds:
        model = MultiInstanceMKLClassifier(FIXED, centering=False, threshold="zero", tol=1e-9, **setting)
        model.fit([bags[i] for i in train], y[train])
        values = model.instance_decision_function([bags[i] for i in test])
        scores[test] = [POOLS[setting["pooling"]](f) for f in values]
    return scores


def test_the_search_is_that_of_a_loop_over_classifiers():
    bags, y = noisy_bags()
    signs = np.where(y == 1, 1.0, -1.0)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(signs, signs))
    grid = dict(C=(0.5, 20.0), max_rounds=(1, 3), pooling=("max", "mean", "softmax"))
    searched = MultiInstanceMKLClassifierCV(FIXED, centering=False, cv=3, tol=1e-9, **grid).fit(bags, y)
    shares, scores_of = {}, {}
    for values in product(*grid.values()):
        setting = dict(zip(grid, values, strict=True))
        scores = naive_scores(bags, y, folds, **setting)
        cut = best_cut(scores, signs, np.ones(24))
        shares[values], scores_of[values] = np.mean((scores > cut) == (y == 1)), scores
    ours = {tuple(p[name] for name in grid): s for p, s in zip(*searched.cv_results_.values(), strict=True)}
    assert ours == pytest.approx(shares)
    best = max(shares, key=shares.get)
    assert tuple(searched.best_params_[name] for name in grid) == best
    assert searched.best_score_ == pytest.approx(shares[best])
    assert searched.threshold_ == pytest.approx(best_cut(scores_of[best], signs, np.ones(24)), abs=1e-4)


@pytest.mark.parametrize(
    "setting",
    [
        dict(C=3.0, pooling="softmax", max_rounds=2, negatives="instances"),
        dict(C=(3.0,), pooling="mean", max_rounds=1, positive_share=0.4),
    ],
)
def test_the_final_fit_is_that_of_the_setting(setting):
    bags, y = witness_bags(20)
    searched = MultiInstanceMKLClassifierCV(FIXED, centering=False, cv=2, **setting).fit(bags, y)
    single = {name: value[0] if isinstance(value, tuple) else value for name, value in setting.items()}
    plain = MultiInstanceMKLClassifier(FIXED, centering=False, threshold="zero", **single).fit(bags, y)
    expected = plain.decision_function(bags) - searched.threshold_
    np.testing.assert_allclose(searched.decision_function(bags), expected, atol=1e-9)
    assert searched.duality_gap_ == plain.duality_gap_
    np.testing.assert_array_equal(searched.candidates_, plain.candidates_)


def test_with_one_round_a_bag_is_the_mean_of_its_instances():
    bags, y = witness_bags(12)
    model = MultiInstanceMKLClassifier(FIXED, centering=False, max_rounds=1, pooling="mean", threshold="zero")
    model.fit(bags, y)
    n_points = sum(len(bag) if label else 1 for bag, label in zip(bags, y, strict=True))
    np.testing.assert_array_equal(model.candidates_[0, 0], np.ones(n_points))


def test_every_instance_of_a_negative_bag_may_be_a_sample():
    bags, y = witness_bags(12)
    given = dict(centering=False, threshold="zero", max_rounds=2, theta=None, tol=1e-8)
    model = MultiInstanceMKLClassifier(FIXED, negatives="instances", **given).fit(bags, y)
    # Negative bags of one instance each, each with its share of the price, are the same problem.
    singles = [row[None] for bag, label in zip(bags, y, strict=True) if label == 0 for row in bag]
    shares = [1.0 / len(bag) for bag, label in zip(bags, y, strict=True) if label == 0 for _ in bag]
    apart = [bag for bag, label in zip(bags, y, strict=True) if label == 1] + singles
    labels = np.r_[np.ones(6, int), np.zeros(len(singles), int)]
    weight = np.r_[np.ones(6), shares]
    again = MultiInstanceMKLClassifier(FIXED, **given).fit(apart, labels, weight)
    assert model.objective_ == pytest.approx(again.objective_, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(bags), again.decision_function(bags), atol=1e-3)


def test_what_cannot_be_compared_is_refused():
    bags, y = witness_bags(8)
    with pytest.raises(ValueError, match="each class needs at least 2 bags"):
        MultiInstanceMKLClassifierCV(FIXED).fit(bags, np.r_[1, np.zeros(7, int)])
    with pytest.raises(ValueError, match="C must be"):
        MultiInstanceMKLClassifierCV(FIXED, C=(1.0, -1.0)).fit(bags, y)
    with pytest.raises(ValueError, match="pooling must be"):
        MultiInstanceMKLClassifierCV(FIXED, pooling=("max", "median")).fit(bags, y)
