"""The multiple-kernel Fisher discriminant: what [Yan09] states, against oracles that share no code."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from tests.reference.conic import assert_encloses
from tests.reference.problems import random_problem
from tests.reference.targets import fisher_value, target_optimum

from kernelweave import FisherMKLClassifier, KernelBank, MKLClassifier, path
from kernelweave.geometry import LpBall
from kernelweave.kernels import Centering, Gaussian, Linear, Polynomial, UnitTrace
from kernelweave.learners import Fisher, Square
from kernelweave.solvers import BlockDescent, CuttingPlane, Newton


@pytest.fixture(scope="module")
def problem():
    return random_problem(0, n=60, M=8)


def fit(Ks, y, **params):
    return FisherMKLClassifier("precomputed", **params).fit(Ks, y)


@pytest.mark.parametrize("reg", [1e-4, 1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
def test_the_criterion_is_that_of_the_conic_optimum(problem, p, reg):
    Ks, y = problem
    optimum = target_optimum(Ks, y, ("fisher", reg), ("lp", p)).value
    model = fit(Ks, y, p=p, reg=reg)
    reached = fisher_value(Ks, model.kernel_weights_, y, reg)
    assert reached == pytest.approx(optimum, rel=1e-6)
    assert model.objective_ == pytest.approx(reached, rel=1e-9)
    assert_encloses(model.certificate_, optimum)
    assert np.linalg.norm(model.kernel_weights_, p) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("reg", [1e-4, 1e-1])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
def test_all_solvers_agree(problem, p, reg):
    Ks, y = problem
    newton = fit(Ks, y, p=p, reg=reg, tol=1e-8).objective_
    semi_infinite = fit(Ks, y, p=p, reg=reg, solver=CuttingPlane(), tol=1e-6).objective_
    assert semi_infinite == pytest.approx(newton, rel=1e-5)
    if p > 1.0:  # towards the simplex the closed form takes ever more steps
        closed = fit(Ks, y, p=p, reg=reg, solver=BlockDescent(), tol=1e-6).objective_
        assert closed == pytest.approx(newton, rel=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_newton_takes_at_most_twelve_inner_solves_to_eight_digits(p):
    Ks, y = random_problem(1, n=500, M=30)
    model = fit(Ks, y, p=p, solver=Newton(), tol=1e-8)
    assert model.duality_gap_ <= 1e-8
    assert model.n_iter_ <= 12


def test_column_generation_needs_far_fewer_rounds_for_l2_than_for_l1():
    Ks, y = random_problem(1, n=80, M=12)
    rounds = {p: fit(Ks, y, p=p, solver=CuttingPlane(), tol=5e-4).n_iter_ for p in (1.0, 2.0)}
    assert rounds[2.0] <= 10
    assert rounds[1.0] >= 3 * rounds[2.0]


def test_one_cholesky_per_inner_solve_also_with_its_curvature(monkeypatch, problem):
    from kernelweave.learners import ridge

    Ks, y = problem
    count, original = [], ridge.cho_factor
    monkeypatch.setattr(ridge, "cho_factor", lambda *a, **k: count.append(1) or original(*a, **k))
    model = fit(Ks, y, p=1.0, tol=1e-8)
    assert len(count) == model.n_iter_


def explicit(X):
    """Two explicit feature maps: the columns, and all products of two of them."""
    return [X, np.einsum("ij,ik->ijk", X, X).reshape(len(X), -1)]


def projected(train, y, new, eta, reg):
    """The regularised discriminant in explicit features, centred by the training means; (6) by hand."""
    centre = [F.mean(axis=0) for F in train]
    Z = np.hstack([np.sqrt(w) * (F - c) for w, F, c in zip(eta, train, centre, strict=True)])
    A = np.hstack([np.sqrt(w) * (F - c) for w, F, c in zip(eta, new, centre, strict=True)])
    a = np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
    return A @ np.linalg.solve(Z.T @ Z + reg * np.eye(Z.shape[1]), Z.T @ a)


def test_new_samples_are_centred_with_the_training_means(rng):
    X, new = rng.normal(size=(40, 3)) + 2.0, rng.normal(size=(15, 3)) + 5.0
    y = np.where(X[:, 0] * X[:, 1] + rng.normal(size=40) > 4.0, 1, -1)
    bank = KernelBank([Linear(), Polynomial(degree=2, offset=0.0)])
    model = FisherMKLClassifier(bank, reg=0.3).fit(X, y)
    expected = projected(explicit(X), y, explicit(new), model.kernel_weights_, 0.3)
    spread = projected(explicit(X), y, explicit(X), model.kernel_weights_, 0.3).std()
    np.testing.assert_allclose(model.transform(new)[:, 0], expected / spread, rtol=1e-7)
    # The mean of the new samples plays no part: one of them alone is told the same.
    np.testing.assert_allclose(model.transform(new[:1]), model.transform(new)[:1], rtol=1e-9)
    assert abs(model.transform(new).mean()) > 10 * abs(model.transform(X).mean())
    assert model.transform(X).mean() == pytest.approx(0.0, abs=1e-12)


def test_the_weights_beat_all_others_in_the_ratio_of_scatters(rng):
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=50) > 0, 1, -1)
    maps, reg = explicit(X), 0.5
    Ks = [F @ F.T for F in maps]
    model = fit(Ks, y, reg=reg, tol=1e-8)

    def ratio(eta):
        Z = np.hstack([np.sqrt(w) * (F - F.mean(axis=0)) for w, F in zip(eta, maps, strict=True)])
        gap = Z[y > 0].mean(axis=0) - Z[y < 0].mean(axis=0)
        return gap @ np.linalg.solve(Z.T @ Z + reg * np.eye(Z.shape[1]), gap)

    best = ratio(model.kernel_weights_)
    assert best == pytest.approx(1 / (y > 0).sum() + 1 / (y < 0).sum() - model.objective_, rel=1e-9)
    for angle in np.linspace(0.0, np.pi / 2, 50):
        assert ratio(np.array([np.cos(angle), np.sin(angle)])) <= best * (1 + 1e-7)


def test_the_limits_of_p_are_selection_and_the_plain_sum(problem):
    Ks, y = problem
    sparse, even = fit(Ks, y, p=1.0), fit(Ks, y, p=np.inf)
    assert (sparse.kernel_weights_ == 0.0).any()
    np.testing.assert_array_equal(even.kernel_weights_, np.ones(8))


@pytest.mark.parametrize("multiclass", ["per_class", "shared"])
def test_one_vs_rest_is_the_binary_problem_of_each_class(multiclass):
    Ks, _ = random_problem(0, n=45, M=5)
    labels = np.random.default_rng(0).permutation(np.arange(45) % 3)
    model = fit(Ks, labels, multiclass=multiclass, reg=1e-2)
    assert model.kernel_weights_.shape == ((3, 5) if multiclass == "per_class" else (5,))
    values = [
        fisher_value(Ks, eta, np.where(labels == c, 1.0, -1.0), 1e-2)
        for c, eta in zip(range(3), np.broadcast_to(model.kernel_weights_, (3, 5)), strict=True)
    ]
    assert model.objective_ == pytest.approx(sum(values), rel=1e-9)
    assert model.transform(Ks).shape == (45, 3)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_joint_discriminant_is_certified(p):
    Ks, _ = random_problem(0, n=45, M=5)
    labels = np.random.default_rng(0).permutation(np.arange(45) % 3)
    optimum = target_optimum(Ks, labels, ("discriminant", 1e-2), ("lp", p)).value
    model = fit(Ks, labels, p=p, reg=1e-2, multiclass="joint")
    assert_encloses(model.certificate_, optimum)
    assert model.duality_gap_ <= 1e-6
    assert model.transform(Ks).shape == (45, 2)


def test_the_joint_discriminant_of_one_linear_kernel_is_scikit_learns(rng):
    centres = rng.normal(scale=2.0, size=(3, 4))
    labels = np.repeat([0, 1, 2], 30)
    X, new = (centres[labels] + rng.normal(size=(90, 4)) for _ in range(2))
    model = FisherMKLClassifier(KernelBank([Linear()]), reg=1e-5, multiclass="joint").fit(X, labels)
    lda = LinearDiscriminantAnalysis(priors=np.full(3, 1 / 3)).fit(X, labels)
    np.testing.assert_array_equal(model.predict(new), lda.predict(new))
    ours, theirs = model.transform(new), lda.transform(new)
    for axis in range(2):
        assert abs(np.corrcoef(ours[:, axis], theirs[:, axis])[0, 1]) == pytest.approx(1.0, abs=1e-6)


def test_the_binary_axis_is_the_same_in_all_three_forms(problem):
    Ks, y = problem
    for multiclass in ("per_class", "shared", "joint"):
        np.testing.assert_allclose(
            fit(Ks, y, multiclass=multiclass).decision_function(Ks), fit(Ks, y).decision_function(Ks)
        )


def test_thresholds_move_the_cut_and_nothing_else():
    Ks, y = random_problem(2, n=60, M=4)
    y = np.where((y > 0) & (np.arange(60) % 3 == 0), 1.0, -1.0)  # rare positives
    models = {t: fit(Ks, y, reg=0.1, threshold=t) for t in ("midpoint", "zero", "leave_one_out")}
    axis = models["midpoint"].transform(Ks)
    # The axis has unit variance, the decision the units of the kernels.
    np.testing.assert_allclose(axis.std(), 1.0)
    unit = models["zero"].decision_function(Ks).std()
    for model in models.values():
        np.testing.assert_allclose(model.transform(Ks), axis)
        shift = model.decision_function(Ks) - unit * axis[:, 0]
        np.testing.assert_allclose(shift, shift[0], atol=1e-12)
    axis = unit * axis
    np.testing.assert_allclose(models["zero"].decision_function(Ks), axis[:, 0])
    means = [axis[y > 0].mean(), axis[y < 0].mean()]
    np.testing.assert_allclose(
        models["midpoint"].decision_function(Ks), axis[:, 0] - np.mean(means), atol=1e-12
    )

    def left_out_errors(cut):
        wrong = 0
        K = sum(w * K for w, K in zip(models["zero"].kernel_weights_, Ks, strict=True))
        for i in range(60):
            rest = np.delete(np.arange(60), i)
            # the regression on the same targets: those of all samples
            a = np.where(y > 0, 1 / (y > 0).sum(), -1 / (y < 0).sum())
            inner = Square(C=1 / 0.1).solve(np.ascontiguousarray(K[np.ix_(rest, rest)]), a[rest])
            wrong += (K[i, rest] @ inner.coef + inner.intercept > cut) != (y[i] > 0)
        return wrong

    cut = axis[0, 0] - models["leave_one_out"].decision_function(Ks)[0]
    assert left_out_errors(cut) <= left_out_errors(np.mean(means))


def test_it_is_the_classifier_with_the_fisher_learner(problem):
    Ks, y = problem
    general = MKLClassifier("precomputed", learner=Fisher(1e-3), geometry=LpBall(2.0), tol=1e-6).fit(Ks, y)
    np.testing.assert_allclose(
        fit(Ks, y, reg=1e-3).decision_function(Ks), general.decision_function(Ks), rtol=1e-6
    )


def test_weights_count_as_repeated_samples(rng):
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] + rng.normal(size=30) > 0, "yes", "no")
    weight = rng.integers(0, 3, size=30)
    bank = KernelBank([Linear(), Gaussian(width=1.0)])
    weighted = FisherMKLClassifier(bank, reg=0.1).fit(X, y, sample_weight=weight)
    repeated = FisherMKLClassifier(bank, reg=0.1).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, atol=1e-3)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-5)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)


def test_a_constant_kernel_gets_no_say(problem):
    Ks, y = problem
    model = fit([Ks[0], np.ones((60, 60))], y, p=1.0)
    assert model.kernel_weights_[1] == 0.0


def test_the_default_bank_has_prepared_columns_and_unit_trace(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    model = FisherMKLClassifier().fit(X, y)
    same = FisherMKLClassifier(KernelBank.prepared(scaling=(Centering(), UnitTrace()))).fit(X, y)
    np.testing.assert_array_equal(model.kernel_weights_, same.kernel_weights_)


@pytest.mark.parametrize(("param", "values"), [("p", [4.0, 2.0, 1.0]), ("reg", [1e-1, 1e-2, 1e-3])])
def test_a_path_walks_the_norm_and_the_ridge(problem, param, values):
    Ks, y = problem
    walk = path(FisherMKLClassifier("precomputed"), Ks, y, param=param, values=values)
    for value, model in zip(values, walk.models, strict=True):
        assert model.objective_ == pytest.approx(fit(Ks, y, **{param: value}).objective_, rel=2e-6)
        np.testing.assert_allclose(model.transform(Ks).mean(), 0.0, atol=1e-10)
