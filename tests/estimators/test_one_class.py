"""Novelty detection: scikit-learn's machine as a limit, certificates, the interface of outlier detectors."""

import pickle

import numpy as np
import pytest
from sklearn.svm import OneClassSVM
from tests.reference.problems import random_problem
from tests.reference.targets import target_optimum

from kernelweave import KernelBank, OneClassMKL, path
from kernelweave.geometry import BoxSimplex, ElasticNetBall, GroupBox, LpBall, RidgeSimplex, Simplex, Uniform
from kernelweave.kernels import Gaussian
from kernelweave.solvers import BlockDescent, CuttingPlane

GEOMETRIES = [
    (Uniform(), ("uniform",)),
    (Simplex(), ("simplex",)),
    (BoxSimplex(theta=0.4), ("box", 0.4)),
    (RidgeSimplex(theta=1.0), ("ridge", 1.0)),
    (LpBall(p=1.5), ("lp", 1.5)),
    (LpBall(p=2.0), ("lp", 2.0)),
    (ElasticNetBall(v=0.4), ("elastic", 0.4)),
    (GroupBox(groups=[0, 0, 1, 1, 2], theta=0.5), ("group", [0, 0, 1, 1, 2], 0.5)),
]


@pytest.fixture(scope="module")
def kernels():
    return random_problem(3, n=50, M=5)[0]


@pytest.mark.parametrize("nu", [0.1, 0.5])
@pytest.mark.parametrize(("geometry", "weights"), GEOMETRIES, ids=[repr(g) for g, _ in GEOMETRIES])
def test_the_certificate_encloses_the_conic_optimum(kernels, geometry, weights, nu):
    optimum = target_optimum(kernels, np.ones(50), ("one class", nu), weights).value
    model = OneClassMKL("precomputed", nu=nu, geometry=geometry, tol=1e-6).fit(kernels)
    assert model.certificate_.lower <= optimum + 1e-7 * abs(optimum)
    assert optimum <= model.certificate_.upper + 1e-7 * abs(optimum)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
def test_one_kernel_is_scikit_learns_machine(kernels, nu):
    K = kernels[0]
    model = OneClassMKL("precomputed", nu=nu, tol=1e-10).fit([K])
    svm = OneClassSVM(nu=nu, kernel="precomputed", tol=1e-10).fit(K)
    np.testing.assert_allclose(model.decision_function([K]), svm.decision_function(K), atol=1e-4)
    np.testing.assert_allclose(model.score_samples([K]), svm.score_samples(K), atol=1e-4)
    assert model.offset_ == pytest.approx(svm.offset_[0], abs=1e-4)


def test_sample_weights_count_samples(kernels):
    weight = np.where(np.arange(50) < 8, 3, 1)
    twice = np.repeat(np.arange(50), weight)
    weighted = OneClassMKL("precomputed", nu=0.3, tol=1e-8).fit(kernels, sample_weight=weight)
    repeated = OneClassMKL("precomputed", nu=0.3, tol=1e-8).fit([K[np.ix_(twice, twice)] for K in kernels])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(
        weighted.decision_function(kernels),
        repeated.decision_function([K[:, twice] for K in kernels]),
        atol=1e-3,
    )


def test_at_most_the_share_asked_for_lies_outside(rng):
    X = rng.normal(size=(200, 3))
    bank = KernelBank([Gaussian(width=w) for w in (0.5, 1.0, 4.0)])
    for nu in (0.1, 0.4):
        model = OneClassMKL(bank, nu=nu, tol=1e-6).fit(X)
        values = model.decision_function(X)
        assert (values < -1e-6).mean() <= nu
        assert len(model.support_) >= nu * 200
    assert (model.predict(rng.normal(size=(20, 3)) + 20.0) == -1).all()
    assert set(model.fit_predict(X)) == {-1, 1}
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_)


def test_the_simplex_keeps_the_smoothest_kernel_alone(rng):
    X = rng.normal(size=(60, 3))
    bank = KernelBank([Gaussian(width=w) for w in (0.5, 1.0, 8.0)])
    np.testing.assert_array_equal(
        OneClassMKL(bank, geometry=Simplex()).fit(X).kernel_weights_, [0.0, 0.0, 1.0]
    )
    assert (OneClassMKL(bank).fit(X).kernel_weights_ > 0.0).all()


def test_other_solvers_agree(kernels):
    newton = OneClassMKL("precomputed", nu=0.3, tol=1e-7).fit(kernels)
    for solver in (BlockDescent(), CuttingPlane()):
        other = OneClassMKL("precomputed", nu=0.3, tol=1e-5, solver=solver).fit(kernels)
        assert other.objective_ == pytest.approx(newton.objective_, rel=1e-5)


def test_a_path_walks_the_share_and_the_geometry(kernels):
    model = OneClassMKL("precomputed", geometry=LpBall(2.0), tol=1e-6)
    walk = path(model, kernels, None, param="nu", values=[0.5, 0.2])
    for one, nu in zip(walk.models, walk.values, strict=True):
        alone = OneClassMKL("precomputed", nu=nu, tol=1e-6).fit(kernels)
        np.testing.assert_allclose(one.score_samples(kernels), alone.score_samples(kernels), atol=1e-3)
    assert np.isnan(walk.train_score).all()
    with pytest.raises(ValueError, match="OneClassMKL begin with geometry__ or nu; got 'learner__nu'"):
        path(model, kernels, None, param="learner__nu", values=[0.1])


@pytest.mark.parametrize("nu", [0.0, 1.5, -1.0, "a"])
def test_illegal_shares_are_named(kernels, nu):
    with pytest.raises(ValueError, match="nu"):
        OneClassMKL("precomputed", nu=nu).fit(kernels)
