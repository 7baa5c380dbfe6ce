"""Paths: the same solutions as fits from scratch, for less."""

import weakref

import numpy as np
import pytest
from sklearn.datasets import load_iris
from tests.reference.problems import random_problem

from kernelweave import (
    EasyMKLClassifier,
    FHeuristicClassifier,
    FisherMKLClassifier,
    KernelBank,
    LPBetaClassifier,
    MKLClassifier,
    MKLRegressor,
    ObscureClassifier,
    path,
)
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex, Simplex
from kernelweave.gram import PackedGrams
from kernelweave.kernels import Gaussian, Linear, UnitTrace
from kernelweave.learners import EpsilonInsensitive, Hinge

TWO_KERNELS = KernelBank([Linear(), Gaussian(gamma=0.2)])
GRIDS = [
    (BoxSimplex(theta=1.0), "geometry__theta", np.linspace(1 / 8, 1.0, 8)),
    (BoxSimplex(nu=1.0), "geometry__nu", np.linspace(1.0, 0.2, 6)),
    (RidgeSimplex(), "geometry__theta", np.logspace(-2, 2, 6)),
    (LpBall(2.0), "geometry__p", [np.inf, 4.0, 2.0, 4 / 3, 1.05, 1.0]),
    (ElasticNetBall(), "geometry__v", np.linspace(0.0, 1.0, 6)),
    (LpBall(2.0), "learner__C", np.logspace(-1, 2, 6)),
]


@pytest.fixture(scope="module")
def problem():
    return random_problem(0, n=60, M=8)


@pytest.mark.parametrize(("geometry", "param", "values"), GRIDS, ids=[f"{g!r}-{p}" for g, p, _ in GRIDS])
def test_every_point_is_what_a_fit_from_scratch_finds(problem, geometry, param, values):
    Ks, y = problem
    model = MKLClassifier("precomputed", geometry=geometry, learner=Hinge(), tol=1e-6)
    walk = path(model, Ks, y, param=param, values=values)
    cold = 0
    for i, value in enumerate(values):
        alone = MKLClassifier("precomputed", geometry=geometry, learner=Hinge(), tol=1e-6)
        alone.set_params(**{param: value})
        alone.fit(Ks, y)
        cold += alone.n_iter_
        assert walk.certificates[i].relative_gap <= 1e-6
        assert walk.certificates[i].lower <= alone.certificate_.upper * (1 + 1e-9)
        assert alone.certificate_.lower <= walk.certificates[i].upper * (1 + 1e-9)
    assert sum(walk.machines) < cold
    assert walk.kernel_weights.shape == (len(values), 8)


def test_the_ends_of_the_theta_path_are_the_average_and_the_simplex(problem):
    Ks, y = problem
    walk = path(
        MKLClassifier("precomputed", geometry=BoxSimplex()),
        Ks,
        y,
        param="geometry__theta",
        values=[1 / 8, 1.0],
    )
    np.testing.assert_array_equal(walk.kernel_weights[0], np.full(8, 1 / 8))
    assert (walk.kernel_weights[1] == 0).any()


def test_the_model_and_its_parts_are_left_alone(problem):
    Ks, y = problem
    model = MKLClassifier("precomputed", geometry=BoxSimplex(theta=0.5))
    walk = path(model, Ks, y, param="geometry__theta", values=[0.3, 0.9], X_test=Ks, y_test=y)
    assert model.geometry.theta == 0.5
    assert not hasattr(model, "classes_")
    assert [m.geometry.theta for m in walk.models] == [0.3, 0.9]
    np.testing.assert_array_equal(walk.test_score, walk.train_score)
    np.testing.assert_array_equal(walk.models[1].predict(Ks), walk.models[1].predict(Ks))


def test_several_classes_and_tidy_frames():
    X, y = load_iris(return_X_y=True)
    walk = path(
        MKLClassifier(geometry=LpBall(2.0), multiclass="per_class"),
        X,
        y,
        param="geometry__p",
        values=[2.0, 1.5],
    )
    assert walk.kernel_weights.shape == (2, 3, 2)
    frame = walk.to_frame()
    assert len(frame) == 2 * 3 * 2
    assert set(frame["class"]) == {0, 1, 2}
    assert frame["relative_gap"].max() <= 1e-4
    assert np.isnan(frame["test_score"]).all()


@pytest.mark.parametrize(
    ("param", "values", "message"),
    [
        ("bank__scaling", [None], "got 'bank__scaling'"),
        ("tol", [1e-3], "got 'tol'"),
        ("geometry__theta", [], "at least one value"),
        ("geometry__theta", [0.5, 0.01], r"theta >= 1/8"),
        ("geometry__zeta", [0.5], "zeta"),
    ],
)
def test_mistakes_are_named(problem, param, values, message):
    Ks, y = problem
    with pytest.raises(ValueError, match=message):
        path(MKLClassifier("precomputed", geometry=BoxSimplex()), Ks, y, param=param, values=values)


@pytest.mark.parametrize("model", [MKLClassifier(), MKLRegressor(), FisherMKLClassifier()])
def test_scores_are_those_of_the_models(model):
    X, y = load_iris(return_X_y=True)
    y = y if isinstance(model, MKLRegressor) else np.array(["one", "two", "three"])[y]
    train, test = np.arange(150) % 3 > 0, np.arange(150) % 3 == 0
    param, values = (
        ("p", [1.5, 2.0]) if isinstance(model, FisherMKLClassifier) else ("learner__C", [0.1, 10.0])
    )
    walk = path(model, X[train], y[train], param=param, values=values, X_test=X[test], y_test=y[test])
    for one, seen, unseen in zip(walk.models, walk.train_score, walk.test_score, strict=True):
        assert seen == pytest.approx(one.score(X[train], y[train]))
        assert unseen == pytest.approx(one.score(X[test], y[test]))


def test_labels_of_another_length_are_refused(problem):
    Ks, y = problem
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        path(
            MKLClassifier("precomputed"),
            Ks,
            y,
            param="learner__C",
            values=[1.0],
            X_test=[K[:5] for K in Ks],
            y_test=y[:4],
        )


def test_models_of_a_path_can_be_changed_one_by_one(problem, rng):
    Ks, y = problem
    model = MKLClassifier("precomputed", geometry=BoxSimplex(), learner=Hinge())
    one, other = path(model, Ks, y, param="geometry__theta", values=[0.2, 0.5]).models
    one.set_params(learner__C=7.0, geometry__theta=0.3)
    assert (other.learner.C, other.geometry.theta, model.learner.C) == (1.0, 0.5, 1.0)
    model = MKLClassifier(KernelBank([Gaussian(0.5), Gaussian(2.0)]))
    one, other = path(
        model, rng.normal(size=(30, 2)), np.arange(30) % 2, param="learner__C", values=[1, 2]
    ).models
    one.set_params(bank__scaling=UnitTrace())
    assert (other.bank.scaling, model.bank.scaling) == (None, None)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: np.where(y > 0, "a", "b"), "Mix of label input types"),
        (lambda y: y + 0.3, "mix of continuous and binary"),
    ],
)
def test_labels_that_score_refuses_are_refused(problem, labels, message):
    Ks, y = problem
    with pytest.raises(ValueError, match=message):
        path(
            MKLClassifier("precomputed"),
            Ks,
            y.astype(int),
            param="learner__C",
            values=[1.0, 2.0],
            X_test=Ks,
            y_test=labels(y),
        )


def test_a_path_holds_one_matrix_at_a_time(rng, monkeypatch):
    """Not one for every class and value: they are as large as all samples by all samples."""
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 3
    seen, most = [], [0]

    class Held(np.ndarray):
        pass

    combine = PackedGrams.combine

    def counted(self, eta, out=None):
        K = combine(self, eta, out).view(Held)
        seen.append(weakref.ref(K))
        alive = [one() for one in seen if one() is not None]
        most[0] = max(most[0], len({one.ctypes.data for one in alive}))
        return K

    monkeypatch.setattr(PackedGrams, "combine", counted)
    model = MKLClassifier(
        KernelBank([Gaussian(0.5), Gaussian(2.0)]), geometry=BoxSimplex(theta=1.0), n_jobs=1
    )
    path(model, X, y, param="geometry__theta", values=[0.6, 0.7, 0.8, 0.9, 1.0])
    assert 0 < most[0] <= 6  # one per class of the last two values at most


@pytest.mark.parametrize("kind", [LPBetaClassifier, ObscureClassifier])
def test_models_without_a_path_say_so(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} has none: fit it once per value"):
        path(kind(TWO_KERNELS), *load_iris(return_X_y=True), param="learner__C", values=[1.0])


def test_two_step_models_vary_what_leaves_the_kernels_as_they_are():
    X, y = load_iris(return_X_y=True)
    walk = path(EasyMKLClassifier(TWO_KERNELS), X, y, param="lam", values=[0.1, 0.5])
    for lam, weights in zip(walk.values, walk.kernel_weights, strict=True):
        alone = EasyMKLClassifier(TWO_KERNELS, lam=lam).fit(X, y).kernel_weights_
        np.testing.assert_allclose(weights, alone, atol=1e-6)
    for model in (EasyMKLClassifier(TWO_KERNELS), FHeuristicClassifier(TWO_KERNELS)):
        with pytest.raises(ValueError, match=r"begin with learner__.*got 'geometry__p'"):
            path(model, X, y, param="geometry__p", values=[2.0])


@pytest.mark.parametrize(
    ("model", "param", "values", "saves"),
    [
        (
            MKLClassifier(geometry=BoxSimplex(), learner=Hinge(C=10.0)),
            "geometry__theta",
            (0.2, 0.4, 1.0),
            True,
        ),
        (MKLClassifier(geometry=LpBall(2.0)), "geometry__p", (4.0, 2.0, 1.3), False),
        (MKLClassifier(geometry=Simplex()), "learner__C", (0.1, 1.0, 10.0), False),
        (
            MKLRegressor(geometry=BoxSimplex(), learner=EpsilonInsensitive()),
            "geometry__theta",
            (0.2, 1.0),
            True,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_known_under_another_geometry_is_not_solved_again(rng, model, param, values, saves):
    X = rng.normal(size=(120, 4))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=120)
    y = y if isinstance(model, MKLRegressor) else np.where(y > 1, "a", "b")
    bank = KernelBank([Gaussian(scale=s) for s in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)])
    model.set_params(bank=bank, tol=1e-5)
    walk = path(model, X, y, param=param, values=values)
    known = [not record.solved for m in walk.models[1:] for record in m.history_]
    assert any(known) == saves
    for value, found in zip(values, walk.models, strict=True):
        alone = model.set_params(**{param: value}).fit(X, y)
        assert found.certificate_.lower <= alone.certificate_.upper
        assert alone.certificate_.lower <= found.certificate_.upper
        assert found.duality_gap_ <= 1e-5
        np.testing.assert_allclose(found.kernel_weights_, alone.kernel_weights_, atol=0.02)
