"""With one kernel the problem is that of scikit-learn's kernel machines: random settings, one by one."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from kernelweave import MKLClassifier, MKLRegressor, OneClassMKL
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    GroupBox,
    LpBall,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    Uniform,
)
from kernelweave.learners import EpsilonInsensitive, Hinge, NuHinge

TOL = 1e-9
GEOMETRIES = [
    Uniform(),
    Simplex(),
    BoxSimplex(),
    LpBall(1.3),
    LpBall(2.0),
    ElasticNetBall(),
    GroupBox(),
    RidgeSimplex(),
    PowerSimplex(),
]
SETTINGS = pytest.mark.parametrize("seed", range(30))


class Setting:
    """A random kernel, geometry, price and targets; ``K`` is among the samples, ``new`` between others and them."""

    def __init__(self, seed, n_kinds=3):
        rng = np.random.default_rng([seed, 28])
        n, d = int(rng.integers(30, 80)), int(rng.integers(2, 8))
        X, Z = rng.standard_normal((n, d)), rng.standard_normal((15, d))
        gamma = float(rng.uniform(0.1, 2.0)) / d
        kernel = [
            lambda A, B: rbf_kernel(A, B, gamma),
            linear_kernel,
            lambda A, B: polynomial_kernel(A, B, degree=2, gamma=gamma, coef0=1.0),
        ][seed % n_kinds]
        self.K, self.new = kernel(X, X), kernel(Z, X)
        self.score = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.5 * rng.standard_normal(n)
        self.C = float(10.0 ** rng.uniform(-1.5, 1.5))
        self.epsilon = float(rng.uniform(0.0, 0.5))
        self.geometry = GEOMETRIES[int(rng.integers(len(GEOMETRIES)))]
        self.weight = rng.uniform(0.2, 2.0, n) if seed % 2 else np.ones(n)
        self.labels = np.where(self.score > np.quantile(self.score, rng.uniform(0.25, 0.6)), "yes", "no")
        self.share = float(rng.uniform(0.1, 0.9))

    def agree(self, ours, theirs):
        """Check decision values in the units of the largest coefficient: all machines stop at 1e-9 or so."""
        scale = max(1.0, float(np.abs(theirs).max()), self.C)
        np.testing.assert_allclose(ours, theirs, atol=2e-5 * scale)


@SETTINGS
def test_classes_are_told_apart_as_by_svc(seed):
    s = Setting(seed)
    model = MKLClassifier("precomputed", learner=Hinge(C=s.C), geometry=s.geometry, tol=TOL)
    model.fit([s.K], s.labels, s.weight)
    svc = SVC(C=s.C, kernel="precomputed", tol=1e-10).fit(s.K, s.labels, s.weight)
    s.agree(model.decision_function([s.new]), svc.decision_function(s.new))
    np.testing.assert_array_equal(model.kernel_weights_, [1.0])


@SETTINGS
def test_three_classes_in_pairs_vote_as_in_svc(seed):
    s = Setting(seed)
    y = np.digitize(s.score, np.quantile(s.score, [0.3, 0.7]))
    model = MKLClassifier("precomputed", learner=Hinge(C=s.C), multiclass="one_vs_one", tol=TOL).fit([s.K], y)
    svc = SVC(C=s.C, kernel="precomputed", tol=1e-10, break_ties=True).fit(s.K, y)
    ours, theirs = model.decision_function([s.new]), svc.decision_function(s.new)
    assert ours.shape == theirs.shape == (15, 3)
    s.agree(ours, theirs)
    np.testing.assert_array_equal(model.predict([s.K]), svc.predict(s.K))


@SETTINGS
def test_the_nu_form_tells_classes_apart_as_by_nu_svc(seed):
    s = Setting(
        seed, n_kinds=1
    )  # Gaussian: with others the classes' hulls may overlap, and then there is no margin
    counts = np.unique(s.labels, return_counts=True)[1]
    nu = (
        (0.3 + 0.6 * s.share) * 2.0 * counts.min() / counts.sum()
    )  # a small share leaves a margin of rounding
    svc = NuSVC(nu=nu, kernel="precomputed", tol=1e-10).fit(s.K, s.labels)
    model = MKLClassifier("precomputed", learner=NuHinge(nu=nu), geometry=s.geometry, tol=TOL)
    ours, theirs = model.fit([s.K], s.labels).decision_function([s.new]), svc.decision_function(s.new)
    # In units of the margin, which may be small beside the values.
    np.testing.assert_allclose(ours, theirs, atol=2e-4 * max(1.0, np.abs(theirs).max()))


@SETTINGS
def test_numbers_are_predicted_as_by_svr(seed):
    s = Setting(seed)
    learner = EpsilonInsensitive(C=s.C, epsilon=s.epsilon)
    model = MKLRegressor("precomputed", learner=learner, geometry=s.geometry, tol=TOL)
    model.fit([s.K], s.score, s.weight)
    svr = SVR(C=s.C, epsilon=s.epsilon, kernel="precomputed", tol=1e-10).fit(s.K, s.score, s.weight)
    s.agree(model.predict([s.new]), svr.predict(s.new))


@SETTINGS
def test_novelties_are_those_of_the_one_class_svm(seed):
    s = Setting(
        seed, n_kinds=1
    )  # with others the origin may be among the samples, and then nothing is outside
    svm = OneClassSVM(nu=s.share, kernel="precomputed", tol=1e-10).fit(s.K)
    model = OneClassMKL("precomputed", nu=s.share, geometry=s.geometry, tol=TOL).fit([s.K])
    ours, theirs = model.decision_function([s.new]), svm.decision_function(s.new)
    np.testing.assert_allclose(ours, theirs, atol=2e-5 * max(1.0, np.abs(theirs).max()))
