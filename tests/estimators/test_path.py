"""Paths: the same solutions as fits from scratch, for less."""

import weakref

import numpy as np
import pytest
from sklearn.datasets import load_iris
from tests.reference.problems import random_problem

from kernelweave import FisherMKLClassifier, KernelBank, MKLClassifier, MKLRegressor, path
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex
from kernelweave.gram import PackedGrams
from kernelweave.kernels import Gaussian, UnitTrace
from kernelweave.learners import Hinge

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
    walk = path(MKLClassifier(geometry=LpBall(2.0)), X, y, param="geometry__p", values=[2.0, 1.5])
    assert walk.kernel_weights.shape == (2, 3, 20)
    frame = walk.to_frame()
    assert len(frame) == 2 * 3 * 20
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
def test_scores_are_those_of_the_models_and_nothing_is_remembered(model):
    X, y = load_iris(return_X_y=True)
    y = y if isinstance(model, MKLRegressor) else np.array(["one", "two", "three"])[y]
    train, test = np.arange(150) % 3 > 0, np.arange(150) % 3 == 0
    param, values = (
        ("p", [1.5, 2.0]) if isinstance(model, FisherMKLClassifier) else ("learner__C", [0.1, 10.0])
    )
    walk = path(model, X[train], y[train], param=param, values=values, X_test=X[test], y_test=y[test])
    for one, seen, unseen in zip(walk.models, walk.train_score, walk.test_score, strict=True):
        assert "_known" not in vars(one)
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
