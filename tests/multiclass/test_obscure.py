"""ObscureClassifier as users meet it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.multiclass.problems import encloses, quarters
from tests.reference.pnorm import objective, pnorm_optimum, pnorm_problem

from kernelweave import KernelBank, Nystroem, ObscureClassifier, RandomFourier, Views, presets
from kernelweave.kernels import Gaussian, Linear, Polynomial, UnitMean
from kernelweave.multiclass import dual_model, stochastic
from kernelweave.multiclass.dual_ascent import AscentState
from kernelweave.solvers import DualAscent, OnlineBatch, Pegasos

QUICK = DualAscent(tol=1e-2)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    return X, y.map(dict(enumerate(["setosa", "versicolor", "virginica"])))


def test_bounds_enclose_the_conic_optimum_and_the_objective_is_the_models():
    Ks, y = pnorm_problem(1)
    optimum = pnorm_optimum(Ks, y, 10.0, 1.5)
    model = ObscureClassifier("precomputed", C=10.0, p=1.5, random_state=0).fit(list(Ks), y)
    lower, upper = model.bounds_
    assert encloses(model.bounds_, optimum)
    assert (model.bounds_.lower, model.bounds_.upper) == (lower, upper)
    assert model.duality_gap_ == model.certificate_.relative_gap <= 1e-3
    coef = np.zeros((50, 3))
    coef[model.support_] = model.dual_coef_.T
    assert objective(Ks, y, coef, model.kernel_weights_, 10.0, 1.5) == pytest.approx(model.objective_)
    assert model.n_support_ == len(model.support_) == np.count_nonzero(coef.any(axis=1))
    expected = sum(e * K @ coef for e, K in zip(model.kernel_weights_, Ks, strict=True))
    np.testing.assert_allclose(model.decision_function(list(Ks)), expected, atol=1e-9)


def test_digits_need_few_row_passes(digits):
    X, y = digits
    kernels = [Linear(), Polynomial(degree=2), Gaussian()]
    bank = KernelBank.per_view(kernels, views=quarters(), scaling=UnitMean())
    model = ObscureClassifier(bank, C=1.0, p=1.1, solver=DualAscent(tol=1e-3), random_state=0).fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert model.n_passes_ <= 20
    assert len(model.kernel_weights_) == 12


@pytest.mark.parametrize("solver", [None, OnlineBatch(3, 5), Pegasos(8)])
def test_every_solver_learns_from_strings_and_frames(iris, solver):
    X, y = iris
    model = ObscureClassifier(C=10.0, solver=solver, random_state=0).fit(X.iloc[::2], y.iloc[::2])
    assert model.score(X.iloc[1::2], y.iloc[1::2]) > 0.85
    assert set(model.predict(X)) <= set(y)
    assert model.decision_function(X).shape == (150, 3)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.bounds_.lower <= model.bounds_.upper == model.objective_


def test_two_classes_have_one_decision_value_and_are_the_difference_of_scores(iris):
    X, y = iris
    two = y != "setosa"
    model = ObscureClassifier(C=10.0, solver=QUICK, random_state=0).fit(X[two], y[two])
    values = model.decision_function(X[two])
    assert values.shape == (100,)
    np.testing.assert_array_equal(model.predict(X[two]), model.classes_[(values > 0).astype(int)])
    assert model.dual_coef_.shape[0] == 2


def test_the_seed_decides_everything(iris):
    X, y = iris
    for solver in (QUICK, OnlineBatch(2, 2)):
        one, two = (
            ObscureClassifier(solver=solver, random_state=7, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
        )
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_it_survives_pickling_and_cloning(iris):
    X, y = iris
    model = ObscureClassifier(solver=QUICK, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    fresh = clone(model)
    assert not hasattr(fresh, "bounds_")
    assert fresh.get_params()["solver__tol"] == 1e-2


def test_scikit_learn_tunes_it(iris):
    X, y = iris
    search = GridSearchCV(
        ObscureClassifier(solver=QUICK, random_state=0), {"p": [1.1, 2.0], "solver__tol": [0.1, 0.01]}, cv=2
    ).fit(X, y)
    assert search.best_score_ > 0.85
    model = ObscureClassifier("precomputed", solver=QUICK, random_state=0)
    D = ((X.values[:, None] - X.values[None]) ** 2).sum(axis=2)
    cube = np.stack([np.exp(-g * D) for g in (0.1, 1.0)], axis=2)
    assert cross_val_score(model, cube, y, cv=3).mean() > 0.85


def test_views_and_weights(iris):
    X, y = iris
    views = Views({"sepal": X.iloc[:, :2], "petal": X.iloc[:, 2:]})
    model = ObscureClassifier(KernelBank.per_view([Gaussian()]), C=10.0, p=1.1, solver=QUICK, random_state=0)
    model.fit(views, y)
    assert model.kernel_names_ == ("sepal·gaussian(scale=1)", "petal·gaussian(scale=1)")
    assert model.kernel_weights_[1] > model.kernel_weights_[0]  # petals tell the species
    K = model.combined_kernel(views)
    np.testing.assert_allclose(K, model.combined_kernel(views, views), atol=1e-12)
    heavy = np.where(y == "virginica", 50.0, 1.0)
    weighted = clone(model).set_params(bank=None).fit(X, y, sample_weight=heavy)
    balanced = clone(model).set_params(bank=None, class_weight={"virginica": 50.0}).fit(X, y)
    np.testing.assert_array_equal(weighted.dual_coef_, balanced.dual_coef_)
    assert (weighted.predict(X)[y == "virginica"] == "virginica").all()


def test_computed_rows_give_the_model_of_stored_ones(digits):
    X, y = digits[0][:400], digits[1][:400]
    bank = KernelBank.per_view([Linear(), Gaussian()], views=quarters(), scaling=UnitMean())
    stored = ObscureClassifier(bank, solver=DualAscent(tol=1e-4), random_state=0).fit(X, y)
    computed = clone(stored).set_params(memory_limit=7e6, solver__tol=1e-3).fit(X, y)
    assert computed.bounds_.lower <= stored.bounds_.upper
    assert stored.bounds_.lower <= computed.bounds_.upper
    assert computed.duality_gap_ <= 1e-3
    assert (computed.predict(X) == stored.predict(X)).mean() > 0.99


@pytest.mark.parametrize("features", [RandomFourier(300), Nystroem(120)])
def test_explicit_features_come_close_to_their_kernels(digits, features):
    X, y = digits[0][:600], digits[1][:600]
    bank = KernelBank.per_view([Gaussian()], views=quarters())
    model = ObscureClassifier(bank, C=10.0, solver=DualAscent(tol=1e-2), random_state=0)
    exact = clone(model).fit(X, y)
    quick = clone(model).set_params(features=features).fit(X, y)
    X_new, y_new = digits[0][600:1200], digits[1][600:1200]
    assert quick.duality_gap_ <= 1e-2
    assert quick.score(X_new, y_new) > exact.score(X_new, y_new) - 0.05
    assert quick.bounds_.upper == pytest.approx(exact.bounds_.upper, rel=0.5)


def test_the_preset_is_the_paper(iris):
    model = presets.obscure(p=1.25, C=10.0)
    assert isinstance(model, ObscureClassifier)
    assert (model.p, model.C) == (1.25, 10.0)
    assert isinstance(model.solver, OnlineBatch)
    assert model.set_params(random_state=0).fit(*iris).bounds_.lower > 0


def test_a_fit_above_its_tolerance_warns_with_the_gap(iris):
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* above tol"):
        ObscureClassifier(C=100.0, solver=DualAscent(tol=1e-9, max_passes=1.0), random_state=0).fit(*iris)


def test_convergence_that_products_computed_anew_do_not_confirm_is_a_warning(monkeypatch):
    Ks, y = pnorm_problem(0, n=30)

    def spoiled(self, tracker):
        tracker = recertify(self, tracker)
        tracker.lower *= 0.5
        return tracker

    recertify = AscentState.recertify
    monkeypatch.setattr(AscentState, "recertify", spoiled)
    with pytest.warns(ConvergenceWarning, match="rounding hides the rest"):
        model = ObscureClassifier("precomputed", random_state=0).fit(list(Ks), y)
    assert model.duality_gap_ > 0.4


@pytest.mark.parametrize(
    ("solver", "module", "name"),
    [
        (DualAscent(tol=1e-9), dual_model._core, "ascend"),
        (OnlineBatch(2, 4), stochastic, "proximal_step"),
    ],
)
def test_an_interrupt_keeps_what_was_learnt_until_then(iris, monkeypatch, solver, module, name):
    calls, real = [], getattr(module, name)

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = ObscureClassifier(solver=solver, random_state=0).fit(*iris)
    assert model.bounds_.lower < model.bounds_.upper < 1.0


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"p": 0.9}, "p must be a number between 1 and 2; got 0.9"),
        ({"p": 2.5}, "p must be"),
        ({"C": 0.0}, "C must be a number above 0"),
        ({"solver": "dual"}, "solver must be"),
        ({"solver": DualAscent}, "got the class DualAscent"),
        ({"solver": DualAscent(tol=2.0)}, "tol must be a number between 0 and 1; got 2.0"),
        ({"features": 100}, "features must be"),
        ({"memory_limit": -1}, "memory_limit"),
        ({"bank": "precomputed", "features": Nystroem()}, "precomputed"),
    ],
)
def test_bad_parameters_get_one_clear_sentence(iris, params, match):
    with pytest.raises((ValueError, TypeError), match=match):
        ObscureClassifier(**params).fit(*iris)


def test_a_sample_without_length_is_named():
    X = pd.DataFrame({"a": [1.0, 0.0, -1.0], "b": [1.0, 0.0, 2.0]})
    with pytest.raises(ValueError, match=r"Sample 1 has k\(x, x\) = 0 under every kernel"):
        ObscureClassifier(KernelBank([Linear()])).fit(X, [0, 1, 1])


def three_classes(n=60):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def test_explicit_features_heed_the_memory_limit():
    X, y = three_classes()
    model = ObscureClassifier(
        KernelBank([Linear(), Gaussian(gamma=0.2)]), features=RandomFourier(40), memory_limit=1000.0
    )
    with pytest.raises(MemoryError, match=r"43 features of 60 samples need .* but 1 KB may be used"):
        model.fit(X, y)
    with pytest.raises(MemoryError, match=r"43 features of 60 samples in all partitions need"):
        model.fit_partitions([X[:30], X[30:]], [y[:30], y[30:]])


COLUMNS = {"x": [0, 1, 2], "zeros": [3, 4]}


def bank_with_zeros(order):
    views = {name: COLUMNS[name.rstrip("23")] for name in order}
    kernels = {"x": Gaussian(gamma=0.2)}
    return KernelBank([(name, kernels.get(name, Linear())) for name in order], views=views)


WAYS = {
    "fit": lambda model, X, y: model.fit(X, y),
    "stream": lambda model, X, y: model.partial_fit(X, y, classes=[0, 1, 2]),
    "partitions": lambda model, X, y: model.fit_partitions([X[:30], X[30:]], [y[:30], y[30:]]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "order", [["x", "zeros"], ["zeros", "x"], ["zeros", "x", "zeros2", "zeros3"]], ids="-".join
)
def test_a_zero_kernel_changes_nothing_wherever_it_stands(way, order):
    """It has no Nyström features, and no part in the model."""
    X, y = three_classes()
    X = np.hstack([X, np.zeros((60, 2))])
    how = {"features": Nystroem(20), "solver": DualAscent(tol=1e-2), "random_state": 0}
    alone = WAYS[way](ObscureClassifier(bank_with_zeros(["x"]), **how), X, y)
    model = WAYS[way](ObscureClassifier(bank_with_zeros(order), **how), X, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-8)
    place = order.index("x")
    np.testing.assert_allclose(model.kernel_norms_[place], alone.kernel_norms_[0], rtol=1e-8)
    assert (np.delete(model.kernel_norms_, place) == 0.0).all()
