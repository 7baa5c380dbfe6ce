"""Tables of more than 2,000 samples: nothing of all pairs is stored, and the fit is that of the matrices."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import KernelBank, MKLClassifier, MKLRegressor, OneClassMKL, Views, path
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram import StoragePolicy
from kernelweave.io import load, save
from kernelweave.kernels import Centering, Gaussian, Linear, Polynomial, UnitDiagonal
from kernelweave.learners import EpsilonInsensitive, Hinge, NuHinge, Square, SquaredHinge
from kernelweave.solvers import Newton, StreamedDescent

N = 2_050
BANK = KernelBank([Gaussian(width=1.0), Gaussian(width=3.0), Linear(), Polynomial(degree=2, gamma=0.5)])


@pytest.fixture
def nothing_stored(monkeypatch):
    """Store nothing that can be streamed, also where several problems would share what is stored."""
    monkeypatch.setattr("kernelweave.estimators.model.StoragePolicy", partial(StoragePolicy, stored_up_to=0))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(N, 4)), rng.normal(size=(200, 4))
    return X, X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * rng.normal(size=N), new


@pytest.fixture(scope="module")
def matrices(data):
    X, _, new = data
    return between(X, X), between(new, X)


def between(A, B):
    """Return the kernels of BANK by their definitions, in float64."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
    distances = [np.exp(-np.maximum(squares, 0.0) / (2.0 * width**2)) for width in (1.0, 3.0)]
    return [*distances, A @ B.T, (0.5 * A @ B.T + 1.0) ** 2]


def is_streamed(model):
    return "never stored" in model.storage_.how


def assert_agree(streamed, dense):
    """Both certificates enclose the optimum, so that neither may lie wholly above or below the other."""
    for one, other in zip(streamed.certificates_, dense.certificates_, strict=True):
        slack = 1e-9 * abs(other.upper)
        assert one.lower <= other.upper + slack
        assert other.lower <= one.upper + slack
        assert one.relative_gap <= 1e-4


def dense(kind, **parts):
    return kind("precomputed", solver=Newton(), tol=1e-6, dtype="float64", **parts)


@pytest.mark.parametrize("learner", [Hinge(C=1.0), SquaredHinge(C=1.0), NuHinge(nu=0.5)], ids=repr)
@pytest.mark.parametrize("geometry", [Simplex(), LpBall(2.0)], ids=repr)
def test_a_classifier_of_a_large_table_is_that_of_its_matrices(data, matrices, learner, geometry):
    X, score, new = data
    y = np.where(score > 0.0, "yes", "no")
    model = MKLClassifier(BANK, learner=learner, geometry=geometry).fit(X, y)
    other = dense(MKLClassifier, learner=learner, geometry=geometry).fit(matrices[0], y)
    assert is_streamed(model)
    assert_agree(model, other)
    assert list(model.classes_) == ["no", "yes"]
    values, expected = model.decision_function(new), other.decision_function(matrices[1])
    np.testing.assert_allclose(values, expected, atol=0.03)
    clear = np.abs(expected) > 0.03
    assert (model.predict(new)[clear] == other.predict(matrices[1])[clear]).all()
    assert model.score(X, y) == pytest.approx(other.score(matrices[0], y), abs=0.005)


def test_decision_values_follow_from_what_is_learnt(data, matrices):
    X, score, new = data
    model = MKLClassifier(BANK, geometry=LpBall(2.0)).fit(X, score > 0.0)
    coef = np.zeros(N)
    coef[model.support_] = model.dual_coef_[0]
    K = np.tensordot(model.kernel_weights_, matrices[1], 1)
    np.testing.assert_allclose(model.decision_function(new), K @ coef + model.intercept_, atol=1e-9)
    np.testing.assert_allclose(model.combined_kernel(new), K, atol=1e-10)
    lack = np.maximum(0.0, 1.0 - np.where(score > 0.0, 1.0, -1.0) * model.decision_function(X))
    paid = 0.5 * coef @ np.tensordot(model.kernel_weights_, matrices[0], 1) @ coef + lack.sum()
    assert model.certificate_.lower * (1 - 1e-9) <= paid <= model.certificate_.upper * (1 + 1e-9)


@pytest.mark.parametrize("multiclass", ["shared", "per_class"])
def test_several_classes_of_a_large_table(data, matrices, multiclass, nothing_stored):
    X, score, new = data
    y = np.array(["low", "middle", "top"])[np.digitize(score, [-0.6, 0.6])]
    model = MKLClassifier(BANK, multiclass=multiclass).fit(X, y)
    other = dense(MKLClassifier, multiclass=multiclass).fit(matrices[0], y)
    assert is_streamed(model)
    assert_agree(model, other)
    assert model.kernel_weights_.shape == ((4,) if multiclass == "shared" else (3, 4))
    values, expected = model.decision_function(new), other.decision_function(matrices[1])
    assert values.shape == (200, 3)
    np.testing.assert_allclose(values, expected, rtol=0.02, atol=0.05)
    ranked = np.sort(expected, axis=1)
    clear = ranked[:, 2] - ranked[:, 1] > 0.1
    assert clear.sum() > 100
    assert (model.predict(new)[clear] == other.predict(matrices[1])[clear]).all()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_a_regressor_of_a_large_table_is_that_of_its_matrices(data, matrices, C):
    X, score, new = data
    learner = EpsilonInsensitive(C=C, epsilon=0.2)
    model = MKLRegressor(BANK, learner=learner).fit(X, score)
    other = dense(MKLRegressor, learner=learner).fit(matrices[0], score)
    assert is_streamed(model)
    assert_agree(model, other)
    np.testing.assert_allclose(model.predict(new), other.predict(matrices[1]), atol=0.05)


def test_several_targets_of_a_large_table(data, matrices):
    X, score, new = data
    Y = np.column_stack([score, X[:, 0]])
    learner = EpsilonInsensitive(C=1.0, epsilon=0.2)
    model = MKLRegressor(BANK, learner=learner).fit(X, Y)
    other = dense(MKLRegressor, learner=learner).fit(matrices[0], Y)
    assert is_streamed(model)
    assert_agree(model, other)
    np.testing.assert_allclose(model.predict(new), other.predict(matrices[1]), atol=0.05)


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_novelties_of_a_large_table(data, matrices, nu):
    X, _, new = data
    model = OneClassMKL(BANK, nu=nu).fit(X)
    other = dense(OneClassMKL, nu=nu).fit(matrices[0])
    assert is_streamed(model)
    assert_agree(model, other)
    values, expected = model.decision_function(new), other.decision_function(matrices[1])
    size = np.abs(expected).max()
    np.testing.assert_allclose(values / size, expected / size, rtol=0.02, atol=0.01)
    clear = np.abs(expected) > 0.01 * size
    assert (model.predict(new)[clear] == other.predict(matrices[1])[clear]).all()


def test_weights_of_samples_count_and_zero_is_none(data):
    X, score, new = data
    weight = np.where(np.arange(N) % 10 == 0, 0.0, 1.0 + np.arange(N) % 3)
    y, used = score > 0.0, weight > 0.0
    model = MKLClassifier(BANK).fit(X, y, sample_weight=weight)
    stored = MKLClassifier(BANK, tol=1e-6).fit(X[used], y[used], sample_weight=weight[used])
    assert is_streamed(model)
    assert not is_streamed(stored)  # 1,845 samples
    assert_agree(model, stored)
    assert used[model.support_].all()
    np.testing.assert_allclose(model.decision_function(new), stored.decision_function(new), atol=0.03)


@pytest.mark.parametrize("scaling", [Centering(), UnitDiagonal()], ids=repr)
def test_views_and_scalings_of_a_large_table(data, scaling):
    X, score, new = data
    bank = KernelBank.per_view([Gaussian(width=1.0), Polynomial(degree=2, gamma=0.3)], scaling=scaling)
    views = Views({"a": X[:, :2], "b": X[:, 2:]})
    fitted = bank.fit(views)
    model = MKLClassifier(bank, tol=1e-5).fit(views, score > 0.0)
    other = dense(MKLClassifier).fit([K.copy() for K in fitted.grams()], score > 0.0)
    assert is_streamed(model)
    assert_agree(model, other)
    some = Views({"a": new[:, :2], "b": new[:, 2:]})
    rows = [K for _, K in sorted(fitted.cross(some), key=lambda item: item[0])]
    np.testing.assert_allclose(model.decision_function(some), other.decision_function(rows), atol=0.03)


@pytest.mark.parametrize("n", [2_000, 2_001])
def test_from_2001_samples_on_nothing_is_stored_unless_a_solver_is_named(data, n):
    X, score, _ = data
    model = MKLClassifier(BANK, tol=1e-3).fit(X[:n], score[:n] > 0.0)
    assert is_streamed(model) == (n > 2_000)
    with_matrix = MKLClassifier(BANK, tol=1e-3, solver=Newton()).fit(X[:n], score[:n] > 0.0)
    assert model.objective_ == pytest.approx(with_matrix.objective_, rel=2e-3)


def test_where_memory_has_no_room_for_a_matrix_none_is_made(rng):
    X = rng.normal(size=(3_500, 4))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * rng.normal(size=3_500)
    with_room = MKLRegressor(BANK, learner=Square(C=1.0), geometry=LpBall(2.0), tol=1e-6).fit(X, score)
    model = MKLRegressor(BANK, learner=Square(C=1.0), geometry=LpBall(2.0), memory_limit=75e6).fit(X, score)
    assert is_streamed(model)
    assert_agree(model, with_room)
    np.testing.assert_allclose(model.predict(X[:200]), with_room.predict(X[:200]), atol=0.05)
    with pytest.raises(MemoryError, match="even when none is stored"):
        MKLRegressor(BANK, memory_limit=1e6).fit(X, score)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_do_not_change_a_digit(data, n_jobs):
    X, score, new = data
    alone = MKLClassifier(BANK).fit(X, score > 0.0)
    together = MKLClassifier(BANK, n_jobs=n_jobs).fit(X, score > 0.0)
    np.testing.assert_array_equal(together.kernel_weights_, alone.kernel_weights_)
    np.testing.assert_array_equal(together.dual_coef_, alone.dual_coef_)
    assert together.certificate_ == alone.certificate_
    np.testing.assert_array_equal(together.decision_function(new), alone.decision_function(new))


def test_a_saved_model_predicts_the_same(data, tmp_path, nothing_stored):
    X, score, new = data
    y = np.array(["low", "middle", "top"])[np.digitize(score, [-0.6, 0.6])]
    for model in (MKLClassifier(BANK, multiclass="per_class").fit(X, y), MKLRegressor(BANK).fit(X, score)):
        save(model, tmp_path / "model.kw")
        loaded = load(tmp_path / "model.kw")
        np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
        assert loaded.certificate_ == model.certificate_
        assert loaded.storage_ == model.storage_


@pytest.mark.parametrize("values", [[0.1, 1.0, 10.0], [10.0, 1.0, 0.1]])
def test_a_path_over_prices_starts_each_from_the_last(data, values, nothing_stored):
    X, score, _ = data
    walk = path(MKLClassifier(BANK), X, score > 0.0, param="learner__C", values=values)
    for C, model in zip(values, walk.models, strict=True):
        assert is_streamed(model)
        assert_agree(model, MKLClassifier(BANK, learner=Hinge(C=C)).fit(X, score > 0.0))


def test_a_budget_is_respected_and_the_certificate_holds(data, matrices):
    X, score, _ = data
    y = score > 0.0
    with pytest.warns(ConvergenceWarning, match=r"above tol=1.00e-06: max_iter="):
        model = MKLClassifier(BANK, learner=Hinge(C=10.0), tol=1e-6, max_iter=2).fit(X, y)
    assert model.n_iter_ <= 3
    exact = dense(MKLClassifier, learner=Hinge(C=10.0)).fit(matrices[0], y).certificate_
    assert model.certificate_.lower <= exact.upper * (1 + 1e-9)
    assert exact.lower <= model.certificate_.upper * (1 + 1e-9)


def test_an_interrupt_keeps_the_best_so_far(data, matrices, monkeypatch):
    X, score, _ = data
    y, seen, usual = score > 0.0, [], StreamedDescent.run

    def interrupted(self, problem, start=None, progress=None):
        def pressed(record):
            seen.append(record)
            if len(seen) == 2:
                raise KeyboardInterrupt

        return usual(self, problem, start, pressed)

    monkeypatch.setattr(StreamedDescent, "run", interrupted)
    with pytest.warns(ConvergenceWarning, match="it was interrupted"):
        model = MKLClassifier(BANK, learner=Hinge(C=10.0), tol=1e-6).fit(X, y)
    exact = dense(MKLClassifier, learner=Hinge(C=10.0)).fit(matrices[0], y).certificate_
    assert model.certificate_.lower <= exact.upper * (1 + 1e-9)
    assert exact.lower <= model.certificate_.upper * (1 + 1e-9)
    assert model.score(X, y) > 0.7


def test_what_float32_cannot_close_goes_on_in_float64(data, matrices):
    X, score, _ = data
    y = score > 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = MKLClassifier(BANK, learner=Hinge(C=100.0), geometry=LpBall(2.0), tol=1e-4).fit(X, y)
    other = dense(MKLClassifier, learner=Hinge(C=100.0), geometry=LpBall(2.0)).fit(matrices[0], y)
    assert_agree(model, other)
