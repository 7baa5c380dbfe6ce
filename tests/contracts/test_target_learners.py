"""What the learners of regression, discriminants and one class promise, by table."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR, OneClassSVM
from tests.contracts.target_cases import CASES, for_columns, ids, samples, solved
from tests.reference.targets import fisher_value

import kernelweave.learners as learners
from kernelweave.learners import EpsilonInsensitive, Fisher, OneClass, Square
from kernelweave.learners.bias import epsilon_bias
from kernelweave.learners.fisher import fewest_errors

each_learner = pytest.mark.parametrize(("learner", "oracle", "targets"), CASES, ids=ids(CASES))


@pytest.fixture(params=[0, 1])
def problem(request):
    Ks, targets = samples(request.param)
    return np.ascontiguousarray(sum(Ks) / 4), targets


@each_learner
def test_the_primal_is_the_loss_of_the_decision_values(problem, learner, oracle, targets):
    K, y = problem[0], problem[1][targets]
    inner = solved(learner, K, y, tol=1e-2)
    f = K @ inner.coef
    half = 0.5 * np.sum(inner.coef * f)
    assert inner.primal == pytest.approx(half + naive_loss(oracle, f, y), rel=1e-9)


def naive_loss(oracle, f, y):
    """The loss with the best intercept by trying many of them, or by its definition."""
    name, parameter, *rest = oracle
    if name == "one class":
        rhos = f[:, None] - f[None, :]  # every kink
        return float((np.maximum(0.0, -rhos).sum(axis=0) / (parameter * len(f)) - f).min())
    if name == "epsilon":
        kinks = np.concatenate([y - f - rest[0], y - f + rest[0]])
        return parameter * min(float(np.maximum(0.0, np.abs(y - f - b) - rest[0]).sum()) for b in kinks)
    if name == "fisher":
        a = np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
        return squares(a - f / np.sqrt(2 * parameter))
    if name == "discriminant":
        share = (y > 0).mean(axis=0)
        return squares((y > 0) / np.sqrt(share) - np.sqrt(share) - f / np.sqrt(2 * parameter))
    if name == "no bias":
        return 0.5 * parameter * float(np.sum((y - f) ** 2))
    return 0.5 * parameter * squares(y - f)


def squares(errors):
    return float(np.sum((errors - errors.mean(axis=0)) ** 2))


@each_learner
def test_measuring_the_solution_gives_it_back(problem, learner, oracle, targets):
    K, y = problem[0], problem[1][targets]
    inner = solved(learner, K, y, tol=1e-6)
    again = for_columns(learner, y).measure(K @ inner.coef, inner.coef, y)
    for name in ("primal", "dual", "gradient_bound", "curvature_bound"):
        assert getattr(again, name) == pytest.approx(getattr(inner, name), rel=1e-9)
    np.testing.assert_allclose(again.intercept, inner.intercept, rtol=1e-9)


@each_learner
def test_its_grid_is_legal_and_runs_from_smooth_to_close(problem, learner, oracle, targets):
    K, y = problem[0], problem[1][targets]
    columns = y.reshape(len(y), -1)
    norms = []
    for value in learner.grid(columns, np.ones(len(y))):
        variant = type(learner)(**learner.get_params() | {learner.tunable: value})
        variant.check(columns[:, 0], np.ones(len(y)))
        inner = solved(variant, K, y, tol=1e-6)
        norms.append(inner.quadratic / np.mean(inner.scale) ** 2)
    assert len(norms) == 5
    assert (np.diff(norms) > -1e-6 * np.abs(norms).max()).all() or isinstance(learner, OneClass)


def test_a_ridge_below_the_rounding_of_the_kernel_still_gives_honest_bounds(problem):
    K, y = problem[0].astype(np.float32), problem[1]["signs"]
    for reg in (1e-7, 1e-9):
        inner = Fisher(reg=reg).solve(K, y, tol=1e-6)
        optimum = fisher_value([K.astype(float)], [1.0], y, reg)
        assert inner.dual <= optimum * (1 + 1e-9)
        assert optimum <= inner.primal * (1 + 1e-9)


def test_square_is_kernel_ridge_without_an_intercept_and_ridge_on_centred_data_with_one(problem):
    K, y = problem[0], problem[1]["several"]
    inner = Square(C=5.0, fit_intercept=False).solve(K, y)
    np.testing.assert_allclose(
        inner.coef, KernelRidge(alpha=0.2, kernel="precomputed").fit(K, y).dual_coef_, rtol=1e-7
    )
    n = len(y)
    P = np.eye(n) - 1.0 / n
    centred = KernelRidge(alpha=0.2, kernel="precomputed").fit(P @ K @ P, y - y.mean(axis=0))
    inner = Square(C=5.0).solve(K, y)
    np.testing.assert_allclose(
        K @ inner.coef + inner.intercept, centred.predict(P @ K @ P) + y.mean(axis=0), atol=1e-9
    )


@pytest.mark.parametrize(("C", "epsilon"), [(0.1, 0.1), (10.0, 0.3), (100.0, 0.0)])
def test_epsilon_insensitive_is_scikit_learns_svr(problem, C, epsilon):
    K, y = problem[0], problem[1]["real"]
    inner = EpsilonInsensitive(C=C, epsilon=epsilon).solve(K, y, tol=1e-10)
    svr = SVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(K @ inner.coef + inner.intercept, svr.predict(K), atol=1e-3)
    if epsilon > 0.0:
        assert set(np.flatnonzero(inner.coef)) == set(svr.support_)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
def test_one_class_is_scikit_learns(problem, nu):
    K = problem[0]
    inner = OneClass(nu=nu).solve(K, np.ones(len(K)), tol=1e-10)
    svm = OneClassSVM(nu=nu, kernel="precomputed", tol=1e-10).fit(K)
    values = (K @ inner.coef + inner.intercept) / inner.scale
    np.testing.assert_allclose(values, svm.decision_function(K), atol=1e-4)


def test_the_midpoint_of_the_projected_means_is_zero(problem):
    K, y = problem[0], problem[1]["signs"]
    inner = Fisher(reg=1e-2).solve(K, y)
    f = K @ inner.coef + inner.intercept
    assert f[y > 0].mean() == pytest.approx(-f[y < 0].mean(), rel=1e-9)
    assert f[y > 0].mean() > 0.0


def test_left_out_values_are_those_of_learners_that_never_saw_the_sample(problem):
    K, y = problem[0], problem[1]["several"]
    inner = Square(C=5.0).solve(K, y)
    told = inner.ridge.left_out(K, inner.coef)
    for i in (0, 7, 23):
        rest = np.delete(np.arange(len(y)), i)
        other = Square(C=5.0).solve(np.ascontiguousarray(K[np.ix_(rest, rest)]), y[rest])
        np.testing.assert_allclose(told[i], K[i, rest] @ other.coef + other.intercept, rtol=1e-8)


def test_the_best_intercept_of_the_tube_beats_all_others(rng):
    for _ in range(20):
        r, C = rng.normal(size=9), rng.random(9)
        C[0] = 0.0
        value = lambda b, r=r, C=C: float(C @ np.maximum(0.0, np.abs(r - b) - 0.4))  # noqa: E731
        best = value(epsilon_bias(r, C, 0.4))
        assert best <= min(value(b) for b in np.linspace(-4, 4, 4001)) + 1e-12


def test_the_cut_with_fewest_errors_beats_all_others(rng):
    for _ in range(30):
        values, weight = rng.integers(0, 6, size=12).astype(float), rng.random(12)
        above = rng.random(12) < 0.5
        wrong = lambda t, v=values, a=above, w=weight: float(w @ ((v > t) != a))  # noqa: E731
        cut = fewest_errors(values, above, weight, 2.5)
        assert wrong(cut) <= min(wrong(t) for t in np.linspace(-1, 7, 801)) + 1e-12
        near = fewest_errors(values, above, weight, cut)
        assert near == cut


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Square(C=0.0), "C must be a finite number above 0; got 0.0"),
        (EpsilonInsensitive(C=-1.0), "C must be a finite number above 0"),
        (EpsilonInsensitive(epsilon=-0.1), "epsilon must be a finite number of at least 0; got -0.1"),
        (EpsilonInsensitive(epsilon="a"), "epsilon must be a finite number of at least 0; got 'a'"),
        (Fisher(reg=0.0), "reg must be a finite number above 0"),
        (learners.Discriminant(reg=-1.0), "reg must be a finite number above 0"),
        (OneClass(nu=1.5), "nu above 0 and at most 1"),
    ],
)
def test_illegal_parameters_are_named(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.check(np.array([1.0, -1.0]), np.ones(2))


def test_a_class_without_weight_is_named():
    with pytest.raises(ValueError, match="samples of both classes"):
        Fisher().check(np.array([1.0, -1.0]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="samples of every class"):
        learners.Discriminant().solve(np.eye(2), np.array([[1.0, -1.0], [-1.0, -1.0]]))
