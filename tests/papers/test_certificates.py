"""Every geometry with every learner, certified against a conic program that shares nothing with us."""

import warnings
from dataclasses import replace
from inspect import isabstract

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.contracts.target_cases import CASES as TARGET_CASES
from tests.contracts.target_cases import for_oracle, ids, samples
from tests.reference.conic import assert_encloses, conic_optimum, conic_optimum_shared
from tests.reference.problems import multiclass_labels, random_problem
from tests.reference.targets import target_optimum

from kernelweave import MKLClassifier
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    Geometry,
    GroupBox,
    LpBall,
    Point,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    Uniform,
)
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge, MarginDistribution, NuHinge, SquaredHinge
from kernelweave.solvers import Newton, Problem, certify

GROUPS = [0, 0, 0, 1, 1, 2, 2, 2]
POINT = [0.3, 0.0, 0.1, 0.5, 0.0, 0.2, 0.05, 0.7]
GEOMETRIES = [
    (Uniform(), ("uniform",)),
    (Point(POINT), ("point", POINT)),
    (Simplex(), ("simplex",)),
    (BoxSimplex(theta=0.3), ("box", 0.3)),
    (BoxSimplex(nu=0.75), ("box", 1 / (0.75 * 8))),
    (RidgeSimplex(theta=0.2), ("ridge", 0.2)),
    (RidgeSimplex(theta=20.0), ("ridge", 20.0)),
    (PowerSimplex(theta=1.0, p=1.5), ("power", 1.0, 1.5)),
    (PowerSimplex(theta=1.0, p=3.0), ("power", 1.0, 3.0)),
    (LpBall(p=1.0), ("lp", 1.0)),
    (LpBall(p=1.1), ("lp", 1.1)),
    (LpBall(p=2.0), ("lp", 2.0)),
    (LpBall(p=4.0), ("lp", 4.0)),
    (LpBall(p=np.inf), ("lp", np.inf)),
    (ElasticNetBall(v=0.4), ("elastic", 0.4)),
    (GroupBox(groups=GROUPS, theta=0.5), ("group", GROUPS, 0.5)),
    (GroupBox(groups=GROUPS, theta=1.0), ("group", GROUPS, 1.0)),
]
LEARNERS = [
    (Hinge(C=1.0), ("hinge", 1.0)),
    (Hinge(C=100.0), ("hinge", 100.0)),
    (SquaredHinge(C=1.0), ("squared", 1.0)),
    (NuHinge(nu=0.3), ("nu", 0.3)),
    (MarginDistribution(lam=0.2), ("distribution", 0.25)),
]
SEEDS = [0, 1]


def fit(Ks, y, learner, geometry, **params):
    return MKLClassifier("precomputed", learner=learner, geometry=geometry, **{"tol": 1e-6, **params}).fit(
        Ks, y
    )


def subclasses(cls):
    return {cls} | {d for c in cls.__subclasses__() for d in subclasses(c)}


def test_every_geometry_has_a_row():
    ours = {c for c in subclasses(Geometry) if c.__module__.startswith("kernelweave.geometry.")}
    assert {c for c in ours if not isabstract(c)} == {type(geometry) for geometry, _ in GEOMETRIES}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("learner", "loss"), LEARNERS, ids=[repr(p) for p, _ in LEARNERS])
@pytest.mark.parametrize(("geometry", "weights"), GEOMETRIES, ids=[repr(p) for p, _ in GEOMETRIES])
def test_the_certificate_encloses_the_conic_optimum(seed, learner, loss, geometry, weights):
    Ks, y = random_problem(seed, n=60, M=8)
    optimum = conic_optimum(Ks, y, loss, weights).value
    certificate = fit(Ks, y, learner, geometry).certificate_
    accuracy = 1e-7 * abs(optimum)  # of the conic solver
    assert certificate.lower <= optimum + accuracy
    assert optimum <= certificate.upper + accuracy
    # With a penalty the objective may cancel to almost nothing: the parts' size is what accuracy refers to.
    scale = max(abs(optimum), abs(certificate.upper))
    assert optimum - certificate.lower <= 1e-5 * scale
    assert certificate.upper - optimum <= 1e-5 * scale
    assert certificate.relative_gap <= 1e-6
    single = fit(Ks, y, learner, geometry, tol=1e-4, dtype="float32")
    assert single.storage_.error > 0.0
    assert_encloses(single.certificate_, optimum, 1e-7)
    assert single.certificate_.relative_gap <= 1e-4
    assert single.history_[-1].certificate == single.certificate_


@pytest.mark.parametrize(("learner", "loss", "targets"), TARGET_CASES, ids=ids(TARGET_CASES))
@pytest.mark.parametrize(("geometry", "weights"), GEOMETRIES, ids=[repr(p) for p, _ in GEOMETRIES])
def test_other_learners_are_certified_in_every_geometry_too(learner, loss, targets, geometry, weights):
    Ks, y = samples(0, n=40, M=8)
    y = y[targets]
    optimum = target_optimum(Ks, for_oracle(y, targets), loss, weights).value
    learner = learner.for_columns() if y.ndim == 2 else learner
    problem = Problem(DenseGrams(Ks, centre=learner.has_bias), y, learner, geometry)
    exact = Newton(tol=1e-5).run(problem)
    assert exact.stopped == "converged"
    for record in exact.history:
        assert_encloses(record.certificate, optimum, 1e-7)
    rounded = replace(problem, grams=problem.grams.packed("float32"))
    result = Newton(tol=5e-4).run(rounded)
    for tol in (1e-3, 0.0):  # as stored, and with the kernels as given
        certified = certify(rounded, result, lambda: problem.grams, tol)
        assert_encloses(certified.certificate, optimum, 1e-7)
        assert certified.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize(("geometry", "weights"), GEOMETRIES, ids=[repr(p) for p, _ in GEOMETRIES])
def test_a_sloppy_learner_still_gives_bounds_that_enclose_the_optimum(geometry, weights):
    Ks, y = random_problem(2, n=60, M=8)
    optimum = conic_optimum(Ks, y, ("hinge", 1.0), weights).value
    with pytest.warns(UserWarning, match="Stopped at a relative duality gap of"):
        model = fit(Ks, y, Hinge(C=1.0, tol=0.3), geometry, max_iter=6)
    assert model.duality_gap_ > 1e-6
    for record in model.history_:
        assert_encloses(record.certificate, optimum, 1e-7)


@pytest.mark.parametrize(
    "geometry", [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0)), (RidgeSimplex(), ("ridge", 1.0))]
)
@pytest.mark.parametrize("learner", [(Hinge(), ("hinge", 1.0)), (SquaredHinge(), ("squared", 1.0))])
def test_weights_shared_by_all_classes_are_certified(geometry, learner):
    Ks, _ = random_problem(0, n=45, M=5)
    Y = multiclass_labels(0, n=45, classes=3)
    labels = Y.argmax(axis=1)
    optimum = conic_optimum_shared(Ks, Y, learner[1], geometry[1]).value
    model = fit(Ks, labels, learner[0], geometry[0], multiclass="shared")
    assert model.kernel_weights_.shape == (5,)
    assert_encloses(model.certificate_, optimum, 1e-7)
    assert model.duality_gap_ <= 1e-6


def test_weights_per_class_are_certified_one_by_one():
    Ks, _ = random_problem(0, n=45, M=5)
    labels = multiclass_labels(0, n=45, classes=3).argmax(axis=1)
    model = fit(Ks, labels, Hinge(), Simplex(), multiclass="per_class")
    assert model.kernel_weights_.shape == (3, 5)
    for c, certificate in zip(np.unique(labels), model.certificates_, strict=True):
        optimum = conic_optimum(Ks, np.where(labels == c, 1.0, -1.0), ("hinge", 1.0), ("simplex",)).value
        assert_encloses(certificate, optimum, 1e-7)
    assert model.certificate_.upper == pytest.approx(sum(c.upper for c in model.certificates_))


@pytest.mark.parametrize("learner", [Hinge(C=2.0), SquaredHinge(C=2.0)])
def test_sample_weights_are_costs_per_sample(learner):
    Ks, y = random_problem(5, n=40, M=4)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, size=40)
    kind = "hinge" if isinstance(learner, Hinge) else "squared"
    optimum = conic_optimum(Ks, y, (kind, 2.0 * weight), ("simplex",)).value
    model = MKLClassifier("precomputed", learner=learner, tol=1e-6).fit(Ks, y, sample_weight=weight)
    assert_encloses(model.certificate_, optimum, 1e-7)


@pytest.mark.parametrize("scale", [1e-3, 1e-1, 30.0, 1e3])
@pytest.mark.parametrize("learner", [Hinge(C=10.0), SquaredHinge(C=10.0), NuHinge(nu=0.3)])
def test_badly_scaled_kernels_keep_their_certificate(scale, learner):
    Ks, y = random_problem(0, n=30, M=4)
    Ks[1], Ks[2] = scale * Ks[1], Ks[2] / scale
    kind = {Hinge: ("hinge", 10.0), SquaredHinge: ("squared", 10.0), NuHinge: ("nu", 0.3)}[type(learner)]
    optimum = conic_optimum(Ks, y, kind, ("simplex",)).value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        certificate = fit(Ks, y, learner, Simplex(), tol=1e-5).certificate_
    assert certificate.lower <= optimum + 1e-6 * abs(optimum)
    assert optimum <= certificate.upper + 1e-6 * abs(optimum)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_a_large_constant_in_the_kernels_changes_nothing(offset):
    Ks, y = random_problem(0, n=40, M=4)
    plain = fit(Ks, y, Hinge(C=10.0), Simplex(), tol=1e-4)
    shifted = fit([K + offset for K in Ks], y, Hinge(C=10.0), Simplex(), tol=1e-4)
    assert shifted.certificate_.lower <= plain.certificate_.upper
    assert plain.certificate_.lower <= shifted.certificate_.upper
    np.testing.assert_allclose(
        shifted.decision_function([K + offset for K in Ks]), plain.decision_function(Ks), atol=0.1
    )


def test_an_energy_of_pure_rounding_is_not_taken_for_an_indefinite_kernel():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 4, axis=0)
    y = np.tile([1.0, -1.0], 10)  # each sample comes with both labels: v'Kv = 0 at the optimum
    with pytest.warns(ConvergenceWarning, match="the objective is zero"):
        model = fit([X @ X.T, 1e6 * X @ X.T], y, NuHinge(nu=1.0), LpBall(2.0), tol=1e-3, max_iter=5)
    assert np.isfinite(model.decision_function([X @ X.T, 1e6 * X @ X.T])).all()


def test_newton_gets_past_a_kink_of_rank_one_kernels():
    rows = [
        [16, -13, -37, -34, -28, 33, -23, -37, -34, -39],
        [13, -29, -31, -28, -22, 18, -11, -13, -30, -37],
        [13, -20, -9, -27, -35, 36, -38, -21, -36, -38],
        [27, -24, -17, -35, -12, 8, -11, -19, -25, -10],
    ]
    X = np.array(rows) / 8
    y = np.array([1, -1, -1, -1, -1, 1, -1, -1, -1, -1])
    Ks = [np.outer(x, x) for x in X]
    optimum = conic_optimum(Ks, y.astype(float), ("hinge", 0.1), ("simplex",)).value
    certificate = fit(Ks, y, Hinge(C=0.1), Simplex(), tol=1e-5).certificate_
    assert certificate.relative_gap <= 1e-5
    assert_encloses(certificate, optimum, 1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_single_variable_kernels_converge_on_the_simplex(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-40, 41, size=(30, 5)) / 8
    y = np.where(X[:, 0] + X[:, 1] + 4 * rng.normal(size=30) > 0, 1.0, -1.0)
    model = fit([np.outer(x, x) for x in X.T], y, Hinge(C=0.1), Simplex(), tol=1e-5)
    assert model.duality_gap_ <= 1e-5


@pytest.mark.parametrize("seed", range(10))
def test_float32_does_not_take_its_rounding_for_an_indefinite_kernel(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 9, size=20).astype(float)
    y = np.where(x + 3 * rng.normal(size=20) > 0, 1, -1)
    y[:2] = 1, -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit([np.outer(x, x)], y, NuHinge(nu=0.05), Simplex(), tol=1e-4, dtype="float32", max_iter=5)
