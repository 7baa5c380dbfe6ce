"""The search of one who names nothing, against plain scikit-learn on plain numpy."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.svm import SVC

from kernelweave import KernelBank, MKLClassifier, MKLClassifierCV, Views
from kernelweave.estimators.averaged_search import COSTS, HeldOutOutcome, best_cost
from kernelweave.estimators.held_out_loss import (
    average_weights,
    best_temperature,
    log_losses,
    unbiased_alignment,
)
from kernelweave.geometry import Simplex
from kernelweave.learners import Hinge

FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    few = np.random.default_rng(0).permutation(len(y))[:90]
    return Views({"left": X[few, :5], "right": np.exp(X[few, 5:] / X[:, 5:].max(axis=0))}), y[few]


@pytest.fixture(scope="module")
def searched(wine):
    X, y = wine
    return MKLClassifierCV(cv=FOLDS, tol=1e-6).fit(X, y)


# -- everything once more, with nothing of ours


def prepared(A, B, how):
    """Return training and other rows of one view, prepared."""
    if how == "centred":
        return A - A.mean(axis=0), B - A.mean(axis=0)
    mean, deviation = A.mean(axis=0), A.std(axis=0)
    Z, W = (A - mean) / deviation, (B - mean) / deviation
    if how == "zscores":
        return Z, W
    n = len(Z)
    own = norm.ppf((rankdata(Z, axis=0) - 0.5) / n)
    other = np.empty(W.shape)
    for i, j in np.ndindex(W.shape):
        below, equal = (Z[:, j] < W[i, j]).sum(), (Z[:, j] == W[i, j]).sum()
        other[i, j] = norm.ppf(np.clip((below + 0.5 * equal) / n, 0.5 / n, 1 - 0.5 / n))
    mean, deviation = own.mean(axis=0), own.std(axis=0)
    return (own - mean) / deviation, (other - mean) / deviation


def kernel_pair(P, Q, kind):
    """Return the training kernel and that of other rows, of unit variance."""
    if kind == "linear":
        K, L = P @ P.T, Q @ P.T
    else:
        D, E = cdist(P, P, "sqeuclidean"), cdist(Q, P, "sqeuclidean")
        mean = D.sum() / (len(P) * (len(P) - 1))
        of = {
            "laplacian(scale=1)": lambda d: np.exp(-np.sqrt(d / mean)),
            "laplacian(scale=4)": lambda d: np.exp(-np.sqrt(4 * d / mean)),
            "gaussian(scale=1)": lambda d: np.exp(-d / mean),
            "gaussian(scale=4)": lambda d: np.exp(-4 * d / mean),
        }[kind]
        K, L = of(D), of(E)
    variance = np.trace(K) / len(K) - K.mean()
    return K / variance, L / variance


def naive_alignment(K, y):
    """Return the correlation over pairs i < j of the centred kernel with the centred target."""
    P = np.eye(len(y)) - 1 / len(y)
    T = (y[:, None] == y).astype(float)
    pairs = np.triu_indices(len(y), 1)
    return max(0.0, np.corrcoef((P @ K @ P)[pairs], (P @ T @ P)[pairs])[0, 1])


def naive_candidate(name, X, y, train, test):
    """Return the kernels of a candidate by its name."""
    how, _, kinds = name.partition("·")
    each, found = [], []
    for table in (X["left"], X["right"]):
        pairs = [kernel_pair(*prepared(table[train], table[test], how), kind) for kind in kinds.split(" + ")]
        found.append(tuple(sum(side) / len(pairs) for side in zip(*pairs, strict=True)))
        each.append(naive_alignment(found[-1][0], y[train]))
    return tuple(
        sum(a * view[side] for a, view in zip(each, found, strict=True)) / sum(each) for side in (0, 1)
    )


def naive_values(K, L, y, C):
    """Return one-vs-rest decision values."""
    machines = [
        SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, np.where(y == c, 1, -1)) for c in np.unique(y)
    ]
    return np.column_stack([machine.decision_function(L) for machine in machines])


def naive_loss(values, y):
    """Return the least log loss over temperatures."""

    def loss(t):
        F = np.exp(t[0]) * values
        p = np.exp(F - F.max(axis=1, keepdims=True))
        return log_loss(y, p / p.sum(axis=1, keepdims=True))

    return min(minimize(loss, [start], method="Nelder-Mead").fun for start in (-1.0, 1.0))


def test_losses_and_weights_of_the_candidates_are_those_of_plain_loops(wine, searched):
    X, y = wine
    losses = {}
    for name in searched.candidate_losses_:
        values = np.empty((len(y), 3))
        for train, test in FOLDS.split(y, y):
            values[test] = naive_values(*naive_candidate(name, X, y, train, test), y[train], 3.0)
        losses[name] = naive_loss(values, y)
    assert len(losses) == 8
    for name, loss in losses.items():
        assert searched.candidate_losses_[name] == pytest.approx(loss, abs=2e-3)
    evidence = np.exp(-0.5 * len(y) * (np.array(list(losses.values())) - min(losses.values())))
    weights = np.where(evidence < np.exp(-5), 0.0, evidence)
    np.testing.assert_allclose(list(searched.candidate_weights_.values()), weights / weights.sum(), atol=0.02)


def test_the_final_kernel_is_the_average_of_the_candidates(wine, searched):
    X, y = wine
    every, C = np.arange(len(y)), searched.best_params_["learner__C"]
    parts = [
        weight * naive_candidate(name, X, y, every, every)[0]
        for name, weight in searched.candidate_weights_.items()
    ]
    P = np.eye(len(y)) - 1 / len(y)
    K = sum(parts)
    np.testing.assert_allclose(P @ searched.combined_kernel(X) @ P, P @ K @ P, atol=1e-8)
    np.testing.assert_allclose(searched.decision_function(X), naive_values(K, K, y, C), atol=2e-2)
    assert searched.kernel_weights_.sum() == pytest.approx(1.0)


def test_the_certificate_encloses_the_optimum_of_the_last_fit(wine, searched):
    X, y = wine
    K, C = searched.combined_kernel(X), searched.best_params_["learner__C"]
    optimum = 0.0
    for c in range(3):
        machine = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, np.where(y == c, 1, -1))
        v = np.zeros(len(y))
        v[machine.support_] = machine.dual_coef_[0]
        optimum += np.abs(v).sum() - 0.5 * v @ K @ v
    assert searched.certificate_.lower - 1e-8 <= optimum <= searched.certificate_.upper + 1e-8
    assert searched.duality_gap_ <= 1e-6


def test_probabilities_come_from_the_temperature_of_the_folds(wine, searched):
    X, _ = wine
    values, proba = searched.decision_function(X), searched.predict_proba(X)
    expected = np.exp(searched.temperature_ * values)
    np.testing.assert_allclose(proba, expected / expected.sum(axis=1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(searched.predict_log_proba(X), np.log(proba))
    np.testing.assert_array_equal(searched.classes_[proba.argmax(axis=1)], searched.predict(X))
    best = min(searched.cv_results_["log_loss"][8:])
    assert (
        best
        == searched.cv_results_["log_loss"][
            list(searched.cv_results_["temperature"]).index(searched.temperature_)
        ]
    )


def test_nothing_of_held_out_samples_is_learnt(wine):
    """Other held-out samples change the values of no other fold, however the folds share their kernels."""
    X, y = wine
    train, test = next(FOLDS.split(y, y))
    odd = Views(
        {name: np.where(np.isin(np.arange(len(y)), test)[:, None], 100 - t, t) for name, t in X.items()}
    )
    both = [MKLClassifierCV(cv=[(train, test)], refit=False).fit(each, y) for each in (X, odd)]
    assert both[0].candidate_losses_ != both[1].candidate_losses_
    swapped = [MKLClassifierCV(cv=[(train, train)], refit=False).fit(each, y) for each in (X, odd)]
    assert swapped[0].candidate_losses_ == swapped[1].candidate_losses_


# -- its parts


def test_the_alignment_is_the_correlation_over_pairs(rng):
    X, y = rng.normal(size=(25, 3)), rng.integers(0, 3, 25)
    K = X @ X.T + np.outer(y == 1, y == 1)
    Y = np.eye(3)[y]
    assert unbiased_alignment(K, Y, np.ones(25)) == pytest.approx(naive_alignment(K, y))
    assert unbiased_alignment(K, 2 * Y - 1, np.ones(25)) == pytest.approx(naive_alignment(K, y))
    assert unbiased_alignment(np.eye(25), Y, np.ones(25)) < naive_alignment(K, y)
    assert unbiased_alignment(-np.outer(y, y) + 0.0, y[:, None] + 0.0, np.ones(25)) == 0.0
    assert unbiased_alignment(np.ones((25, 25)), Y, np.ones(25)) == 0.0


def test_samples_without_weight_do_not_count_in_the_alignment(rng):
    X, y = rng.normal(size=(25, 3)), rng.integers(0, 2, 25)
    K, weight = X @ X.T, (np.arange(25) < 20).astype(float)
    part = unbiased_alignment(K[:20, :20], np.eye(2)[y[:20]], np.ones(20))
    assert unbiased_alignment(K, np.eye(2)[y], weight) == pytest.approx(part)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_temperature_minimises_the_log_loss(n_classes, rng):
    index = rng.integers(0, n_classes, 80)
    weight = rng.uniform(0.5, 1.5, 80)
    values = (
        rng.normal(size=80) + 0.8 * (index - 0.5)
        if n_classes == 2
        else rng.normal(size=(80, 4)) + np.eye(4)[index]
    )
    found = best_temperature(values, index, weight)
    losses = [weight @ log_losses(values, index, found * factor) for factor in (0.97, 1.0, 1.03)]
    assert losses[1] < min(losses[0], losses[2])
    other = minimize(lambda t: weight @ log_losses(values, index, float(t[0])), [1.0], method="BFGS")
    assert found == pytest.approx(other.x[0], rel=1e-3)


def test_weights_fall_with_the_loss_and_end_at_the_fifth_power():
    weights = average_weights(np.array([0.5, 0.52, 0.7]), 100)
    assert weights[0] / weights[1] == pytest.approx(np.exp(1.0))
    assert weights[2] == 0.0
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("place", range(len(COSTS)))
def test_the_search_for_C_goes_to_the_least_loss_wherever_it_lies(place):
    path = best_cost(lambda C: HeldOutOutcome(C, 1.0, abs(COSTS.index(C) - place), 0.0))
    reached = min(path, key=lambda one: one.loss)
    assert COSTS.index(reached.C) == place
    assert len({one.C for one in path}) == len(path)


# -- as a whole


def test_what_is_named_goes_to_the_grid(wine):
    X, y = wine
    grid = MKLClassifierCV(geometry=Simplex(), learner_values=[1.0, 10.0], cv=2).fit(X, y)
    assert not hasattr(grid, "candidate_weights_")
    assert grid.mean_score_.shape == (2, 1)
    assert not hasattr(grid, "predict_proba")
    for named in ({"learner": Hinge()}, {"bank": KernelBank.per_view()}, {"scoring": "accuracy"}):
        assert not MKLClassifierCV(**named).averages
    assert MKLClassifierCV(KernelBank.prepared(views={"a": [0]})).averages


def test_two_classes_by_name_with_gaps_and_categories(rng):
    n = 60
    y = np.where(rng.random(n) < 0.5, "no", "yes")
    table = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 2.0 * (y == "yes"),
            "skewed": np.exp(3 * rng.normal(size=n)),
            "place": rng.choice(["a", "b", "c"], n),
        }
    )
    table.loc[3, "size"] = np.nan
    model = MKLClassifierCV().fit(table, y)
    assert list(model.classes_) == ["no", "yes"]
    assert model.score(table, y) > 0.8
    assert model.predict_proba(table.iloc[:4]).shape == (4, 2)
    assert (model.predict_proba(table)[:, 1] > 0.5).tolist() == (model.predict(table) == "yes").tolist()
    assert any("ranks" in name for name in model.candidate_weights_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))


def test_counts_have_one_preparation(rng):
    y = np.repeat([0, 1, 2], 20)
    X = sparse.csr_matrix(rng.poisson(0.1 + 0.5 * (np.arange(150) % 3 == y[:, None])))
    model = MKLClassifierCV(cv=3).fit(X, y)
    assert [name.partition("·")[0] for name in model.candidate_weights_] == ["zscores"] * 3
    assert model.score(X, y) > 0.9


def test_classes_missing_in_a_fold_and_folds_by_group():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) // 25  # a class is two groups
    model = MKLClassifierCV(cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert model.n_splits_ == 3
    rare = np.r_[0:40, 50:90, [100]]  # one sample of the last class
    with pytest.warns(UserWarning, match="least populated class"):
        lonely = MKLClassifierCV().fit(X[rare], y[rare])
    assert lonely.predict_proba(X[:3]).shape == (3, 3)


def test_weights_of_samples_and_the_order_of_threads(wine):
    X, y = wine
    whole = X[np.r_[0:60]]
    weight = np.r_[np.ones(60), np.zeros(30)]
    folds = list(FOLDS.split(y[:60], y[:60]))
    own = MKLClassifierCV(cv=folds, n_jobs=2).fit(whole, y[:60])
    same = MKLClassifierCV(cv=folds).fit(whole, y[:60], sample_weight=np.ones(60))
    np.testing.assert_allclose(list(own.candidate_losses_.values()), list(same.candidate_losses_.values()))
    light = MKLClassifierCV(cv=FOLDS).fit(X, y, sample_weight=weight)
    assert light.candidate_losses_ != own.candidate_losses_
    assert light.score(whole, y[:60]) > 0.9


def test_kernels_of_folds_are_computed_again_where_memory_is_short(wine, searched):
    X, y = wine
    short = MKLClassifierCV(cv=FOLDS, tol=1e-6, memory_limit=5e5, refit=False).fit(X, y)
    np.testing.assert_allclose(
        list(short.candidate_losses_.values()), list(searched.candidate_losses_.values()), atol=1e-3
    )


def test_a_search_on_some_samples_fits_all(rng):
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int)
    model = MKLClassifierCV(search_samples=80).fit(X, y)
    assert (model.n_search_samples_, model.bank_.n_samples) == (80, 300)
    assert model.score(X, y) > 0.85


def test_results_without_a_model_and_clones(wine):
    X, y = wine
    search = clone(MKLClassifierCV(refit=False, cv=2)).fit(X, y)
    assert list(search.frame().columns) == ["candidate", "learner__C", "log_loss", "temperature", "score"]
    with pytest.raises(NotFittedError, match="refit=False"):
        search.predict(X)
    with pytest.raises(NotFittedError):
        MKLClassifierCV().predict_proba(X)


def test_probability_still_calibrates_when_asked(wine):
    X, y = wine
    model = MKLClassifierCV(probability=True, cv=2).fit(X, y)
    assert hasattr(model, "calibration_")
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_the_fixed_default_is_made_of_parts_that_can_be_named(wine):
    X, y = wine
    model = MKLClassifier(tol=1e-7).fit(X, y)
    named = MKLClassifier(KernelBank.prepared(), learner=Hinge(C="loo"), multiclass="shared", tol=1e-7).fit(
        X, y
    )
    np.testing.assert_array_equal(model.dual_coef_, named.dual_coef_)
    assert model.kernel_weights_.max() <= 0.5 + 1e-9
