"""Paths: the same solutions as fits from scratch, for less."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from tests.reference.problems import random_problem

from kernelweave import MKLClassifier, path
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex
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
