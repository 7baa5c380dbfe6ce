"""SVM+ against a conic solver, and at the limits that are known."""

import numpy as np
import pytest
from sklearn.svm import SVC
from tests.contracts.perturbed import perturbed
from tests.reference.conic import conic_optimum
from tests.reference.privileged import svm_plus_optimum
from tests.reference.problems import gaussian, random_problem, unit_mean_diagonal

from kernelweave import SVMPlusClassifier
from kernelweave.geometry import BoxSimplex, LpBall, RidgeSimplex, Simplex, Uniform
from kernelweave.privileged import SVMPlus
from kernelweave.privileged.svm_plus_problem import SVMPlusTerms, coefficients, evaluate, feasible_dual

METHODS = ["interior", "smo"]


def privileged_problem(seed, n=50, M=3, L=3):
    """Kernels of noisy features, and of cleaner ones for training only."""
    rng = np.random.default_rng([seed, 9])
    clean = rng.standard_normal((n, 4))
    noisy = clean + 0.7 * rng.standard_normal((n, 4))
    y = np.where(clean[:, 0] + np.sin(2.0 * clean[:, 1]) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    Ks = [gaussian(noisy, 2.0), noisy @ noisy.T, gaussian(noisy[:, :2], 1.0)][:M]
    stars = [clean @ clean.T, gaussian(clean, 1.0), gaussian(clean[:, 2:], 1.0)][:L]
    return [unit_mean_diagonal(K) for K in Ks], [unit_mean_diagonal(K) for K in stars], y


def fit(Ks, stars, y, **params):
    model = SVMPlusClassifier(kernel="precomputed", privileged_kernel="precomputed", **{"tol": 1e-6} | params)
    return model.fit(list(Ks), y, privileged=list(stars))


def encloses(certificate, optimum, accuracy=2e-7):
    return certificate.lower <= optimum * (1 + accuracy) and optimum <= certificate.upper * (1 + accuracy)


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("star", [0, 1], ids=["low rank", "full rank"])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_certificate_encloses_the_conic_optimum(C, lam, star, method):
    Ks, stars, y = privileged_problem(0)
    optimum = svm_plus_optimum(Ks[:1], stars[star : star + 1], y, C, lam)
    model = fit(Ks[:1], stars[star : star + 1], y, C=C, lam=lam, method=method, tol=1e-5)
    assert encloses(model.certificate_, optimum)
    cheap_slacks = C / lam >= 1e3  # where pairs are known to stall, and say so
    assert model.duality_gap_ <= 1e-5 or (method == "smo" and cheap_slacks)


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("seed", range(3))
def test_duplicates_and_low_rank_are_enclosed_at_any_price(seed, C, method):
    """Every fourth sample is there twice, with either label, and one space is of low rank."""
    rng = np.random.default_rng([seed, 30])
    X, Z = rng.normal(size=(40, 4)), rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + Z[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    X[::4], Z[::4], y[::4] = X[1::4], Z[1::4], -y[1::4]
    K, star = (gaussian(X, 1.0), Z @ Z.T) if seed % 2 else (X @ X.T, gaussian(Z, 1.0))
    optimum = svm_plus_optimum([K], [star], y, C, 0.1)
    model = fit([K], [star], y, C=C, lam=0.1, method=method, tol=1e-5)
    assert encloses(model.certificate_, optimum)
    if method == "auto":
        assert model.duality_gap_ <= 1e-5


def test_auto_ends_in_the_interior_point_where_smo_runs_out_of_steps():
    Ks, stars, y = privileged_problem(12)
    kernels = np.array([Ks[0], stars[0] / 1e-3])
    optimum = svm_plus_optimum(Ks[:1], stars[:1], y, 100.0, 1e-3)
    few = {"C": 100.0, "smo_steps": 0.01, "low_rank_steps": 0.01}
    alone = SVMPlus(**few, max_dense=10, max_low_rank=10).solve(kernels, y, tol=1e-6)
    followed = SVMPlus(**few).solve(kernels, y, tol=1e-6)
    assert alone.relative_gap > 1e-6  # these prices make SMO stall
    assert followed.relative_gap <= 1e-6
    for solution in (alone, followed):
        assert solution.dual <= optimum * (1 + 1e-6)
        assert solution.primal >= optimum * (1 - 1e-6)


def test_fixed_weights_are_solved_once(monkeypatch):
    Ks, stars, y = privileged_problem(13)
    solved, solve = [], SVMPlus.solve

    def counted(self, *args):
        solved.append(args)
        return solve(self, *args)

    monkeypatch.setattr(SVMPlus, "solve", counted)
    model = fit(Ks[:1], stars[1:2], y, tol=1e-5)
    assert len(solved) == model.n_iter_ == 1
    assert model.duality_gap_ <= 1e-5
    fit(Ks, stars, y, tol=1e-5)
    assert len(solved) > 3


@pytest.mark.parametrize("method", METHODS)
def test_bounds_hold_however_early_it_stops(method):
    Ks, stars, y = privileged_problem(1)
    optimum = svm_plus_optimum(Ks[:1], stars[:1], y, 1.0, 0.1)
    gaps = []
    for tol in (0.5, 1e-1, 1e-2, 1e-3):
        solution = SVMPlus(C=1.0, method=method).solve(np.array([Ks[0], stars[0] / 0.1]), y, tol=tol)
        assert solution.dual <= optimum <= solution.primal
        gaps.append(solution.relative_gap)
    assert gaps[0] > gaps[-1]


@pytest.mark.parametrize(
    ("decision", "privileged"),
    [
        ((Simplex(), ("simplex",)), (Simplex(), ("simplex",))),
        ((LpBall(2.0), ("lp", 2.0)), (Simplex(), ("simplex",))),
        ((BoxSimplex(theta=0.5), ("box", 0.5)), (LpBall(2.0), ("lp", 2.0))),
        ((Simplex(), ("simplex",)), (RidgeSimplex(theta=1.0), ("ridge", 1.0))),
        ((Uniform(), ("uniform",)), (Simplex(), ("simplex",))),
    ],
    ids=lambda pair: repr(pair[0]),
)
@pytest.mark.parametrize(("C", "lam"), [(1.0, 0.1), (10.0, 10.0)])
def test_weights_in_both_spaces_match_the_conic_optimum(decision, privileged, C, lam):
    Ks, stars, y = privileged_problem(2)
    optimum = svm_plus_optimum(Ks, stars, y, C, lam, decision[1], privileged[1])
    model = fit(Ks, stars, y, C=C, lam=lam, geometry=decision[0], privileged_geometry=privileged[0], tol=1e-5)
    assert encloses(model.certificate_, optimum)
    assert model.duality_gap_ <= 1e-5
    assert decision[0].contains(model.kernel_weights_)
    assert privileged[0].contains(model.privileged_weights_)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_samples_without_privileged_features_have_slacks_of_their_own(share):
    Ks, stars, y = privileged_problem(3)
    rng = np.random.default_rng(3)
    corrected = rng.permutation(y.size) < share * y.size
    optimum = svm_plus_optimum(Ks[:1], stars[:1], y, 1.0, 0.1, corrected=corrected)
    star = np.where(corrected[:, None] & corrected, stars[0], np.nan)
    model = SVMPlusClassifier(kernel="precomputed", privileged_kernel="precomputed", C=1.0, lam=0.1, tol=1e-6)
    if share == 0.0:
        with pytest.warns(UserWarning, match="Every row of privileged is NaN"):
            model.fit(Ks[0], y, privileged=star)
    else:
        model.fit(Ks[0], y, privileged=star)
    assert encloses(model.certificate_, optimum)
    assert model.duality_gap_ <= 1e-6
    if share < 1.0:
        f = Ks[0][:, model.support_] @ model.dual_coef_[0] + model.intercept_
        own = np.maximum(0.0, 1.0 - y * f)
        np.testing.assert_allclose(model.slack_[0][~corrected], own[~corrected], atol=1e-8)


def test_privileged_features_of_one_class_only_are_legal():
    Ks, stars, y = privileged_problem(4)
    optimum = svm_plus_optimum(Ks[:1], stars[:1], y, 1.0, 1.0, corrected=y > 0)
    Z = np.where((y > 0)[:, None], np.linalg.cholesky(stars[0] + 1e-12 * np.eye(y.size)), np.nan)
    star = np.where((y > 0)[:, None] & (y > 0), Z @ Z.T, np.nan)
    model = fit([Ks[0]], [star], y, C=1.0, lam=1.0)
    assert encloses(model.certificate_, optimum, 1e-6)


def test_without_privileged_features_it_is_the_svm():
    Ks, _, y = privileged_problem(5)
    model = SVMPlusClassifier(kernel="precomputed", C=3.0, tol=1e-8).fit(Ks[0], y)
    svc = SVC(C=3.0, kernel="precomputed", tol=1e-10).fit(Ks[0], y)
    np.testing.assert_allclose(model.decision_function(Ks[0]), svc.decision_function(Ks[0]), atol=1e-4)
    assert encloses(model.certificate_, conic_optimum([Ks[0]], y, ("hinge", 3.0), ("uniform",)).value)


@pytest.mark.parametrize("limit", ["lam", "zero", "constant"])
def test_constant_privileged_features_give_the_max_hinge_svm(limit):
    """min ||w||^2/2 + nC max_i hinge_i: alpha >= 0 with sum at most nC, and not the C-SVC."""
    import cvxpy as cp

    Ks, stars, y = privileged_problem(6)
    n = y.size
    L = np.linalg.cholesky(Ks[0] + 1e-10 * np.eye(n))
    w, b = cp.Variable(n), cp.Variable()
    hinge = cp.max(cp.pos(1 - cp.multiply(y, L @ w + b)))
    optimum = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + n * 0.1 * hinge)).solve(solver=cp.CLARABEL)
    star = {"lam": stars[1], "zero": np.zeros((n, n)), "constant": np.ones((n, n))}[limit]
    model = fit(Ks[:1], [star], y, C=0.1, lam=1e9 if limit == "lam" else 1.0)
    assert model.objective_ == pytest.approx(optimum, rel=1e-5)
    assert np.ptp(model.slack_) <= 1e-6 * model.slack_.max()
    assert abs(optimum - conic_optimum([Ks[0]], y, ("hinge", 0.1), ("uniform",)).value) > 0.1


def test_free_slacks_give_the_svm():
    """lam -> 0 with K* = I: the slack of each sample costs nothing but C."""
    Ks, _, y = privileged_problem(7)
    model = fit(Ks[:1], [np.eye(y.size)], y, C=1.0, lam=1e-7)
    svm = conic_optimum([Ks[0]], y, ("hinge", 1.0), ("uniform",)).value
    assert model.objective_ == pytest.approx(svm, rel=1e-5)


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_it_is_a_weighted_svm_once_the_slacks_are_known(lam):
    """At the optimum it is the C-SVC with C_i = alpha_i + beta_i."""
    Ks, stars, y = privileged_problem(8)
    kernels = np.array([Ks[0], stars[1] / lam])
    solution = SVMPlus(C=1.0).solve(kernels, y, tol=1e-9)
    caps = solution.coef[:, 1] + 1.0
    assert np.ptp(caps) > 0.1
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-10).fit(Ks[0], y, sample_weight=np.maximum(caps, 1e-12))
    ours = Ks[0] @ solution.coef[:, 0] + solution.intercept
    np.testing.assert_allclose(ours, svc.decision_function(Ks[0]), atol=2e-3)


def test_weights_are_repetitions():
    Ks, stars, y = privileged_problem(9, n=40)
    weight = np.random.default_rng(0).integers(0, 3, 40).astype(float)
    weight[:4] = 1.0
    repeated = np.repeat(np.arange(40), weight.astype(int))
    inside = np.ix_(repeated, repeated)
    params = {"kernel": "precomputed", "privileged_kernel": "precomputed", "lam": 0.1, "tol": 1e-7}
    weighted = SVMPlusClassifier(**params).fit(Ks[0], y, privileged=stars[1], sample_weight=weight)
    longer = SVMPlusClassifier(**params).fit(Ks[0][inside], y[repeated], privileged=stars[1][inside])
    assert weighted.objective_ == pytest.approx(longer.objective_, rel=1e-6)
    np.testing.assert_allclose(
        weighted.decision_function(Ks[0]), longer.decision_function(Ks[0][:, repeated]), atol=1e-3
    )
    absent = weight == 0.0
    assert not np.isin(weighted.support_, np.flatnonzero(absent)).any()
    np.testing.assert_array_equal(weighted.slack_[0][absent], 0.0)


def test_both_routes_solve_random_problems_alike():
    for seed in range(3):
        Ks, y = random_problem(seed, n=40, M=4)
        kernels = np.array([Ks[0], Ks[2] / 0.03])
        a, b = (SVMPlus(C=2.0, method=method).solve(kernels, y, tol=1e-6) for method in METHODS)
        assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1 + 1e-12)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_any_feasible_point_bounds_the_optimum(share):
    """The best intercept and the smallest offset make a primal point of whatever coefficients there are."""
    Ks, stars, y = privileged_problem(10)
    rng = np.random.default_rng(10)
    C, informed = rng.uniform(0.5, 2.0, y.size), rng.permutation(y.size) < share * y.size
    optimum = svm_plus_optimum(Ks[:1], stars[1:2], y, C, 0.1, corrected=informed)
    terms = SVMPlusTerms(y, C, informed)
    for size in (0.0, 0.1, 1.0, 10.0):
        alpha, beta = feasible_dual(terms, size * rng.exponential(size=y.size), rng.exponential(size=y.size))
        coef = coefficients(terms, alpha, beta)
        f, g = Ks[0] @ coef[:, 0], stars[1] @ coef[:, 1] / 0.1
        solution = evaluate(terms, coef, np.column_stack([f, g]))
        assert (solution.xi >= -1e-12).all()
        assert (y * (f + solution.intercept) >= 1.0 - solution.xi - 1e-9).all()
        assert np.ptp((solution.xi - g)[informed]) <= 1e-9
        assert solution.primal == pytest.approx(0.5 * (coef[:, 0] @ f + coef[:, 1] @ g) + C @ solution.xi)
        assert solution.dual <= optimum * (1 + 1e-6)
        assert solution.primal >= optimum * (1 - 1e-6)


@pytest.mark.parametrize("size", [1e-6, 1e-3])
def test_rounding_of_either_kernel_moves_the_primal_by_no_more_than_its_bound(size, rng):
    Ks, stars, y = privileged_problem(11)
    kernels = np.array([Ks[0], stars[1] / 0.1])
    learner = SVMPlus(C=1.0)
    solution = learner.solve(kernels, y, tol=1e-3)
    errors = size * np.abs(kernels).max(axis=(1, 2))
    for space in (0, 1):
        only = np.where(np.arange(2) == space, errors, 0.0)
        for K_true in perturbed(kernels[space], size, rng):
            true = kernels.copy()
            true[space] = K_true
            images = np.column_stack([true[0] @ solution.coef[:, 0], true[1] @ solution.coef[:, 1]])
            moved = learner.measure(images, solution.coef, y).primal
            assert moved <= solution.primal + solution.rounding_allowance(np.ones(2), only)
