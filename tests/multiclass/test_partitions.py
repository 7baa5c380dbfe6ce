"""Training on partitions: mixtures of dual points, bounds, input, and a cluster that loses a worker."""

import re
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.multiclass.problems import encloses, halves
from tests.reference.pnorm import dual_value, pnorm_optimum

from kernelweave import KernelBank, ObscureClassifier, RandomFourier
from kernelweave.kernels import Gaussian, Linear
from kernelweave.multiclass.partitioned_ascent import DualBundle, SharedTheta, best_mixture, update_partition
from kernelweave.solvers import DualAscent, OnlineBatch, Pegasos


@pytest.fixture(scope="module")
def some_digits(digits):
    return digits[0][:900], digits[1][:900]


def feature_kernels(model, X):
    """Return the kernels of the explicit features that a model was fitted on."""
    Phi, offsets = model.scorer_.features.transform(X), model.scorer_.features.offsets
    return [Phi[:, a:b] @ Phi[:, a:b].T for a, b in pairwise(offsets)]


@pytest.mark.parametrize("q", [2.0, 3.0, 11.0])
def test_the_mixture_is_the_best_one(rng, q):
    groups, points, M, D = 3, 4, 2, 12
    T = rng.normal(size=(M, groups * points, D))
    gains = rng.uniform(0.0, 3.0, size=(groups, points))
    scale = 2.0
    lam = best_mixture(np.array([one @ one.T for one in T]), gains, q, scale)
    np.testing.assert_allclose(lam.sum(axis=1), 1.0, atol=1e-12)
    assert (lam >= 0.0).all()

    def dual(x):
        lengths = np.array([np.linalg.norm(one.T @ x) for one in T])
        return x @ gains.ravel() - (lengths**q).sum() ** (2 / q) / (2 * scale)

    x = cp.Variable(groups * points, nonneg=True)
    norms = cp.hstack([cp.norm(one.T @ x) for one in T])
    sums = [cp.sum(x[g * points : (g + 1) * points]) == 1 for g in range(groups)]
    value = cp.Problem(
        cp.Maximize(gains.ravel() @ x - cp.square(cp.pnorm(norms, q)) / (2 * scale)), sums
    ).solve(solver=cp.CLARABEL)
    assert dual(lam.ravel()) == pytest.approx(value, rel=1e-6)


def model(tol=1e-2):
    bank = KernelBank.per_view([Gaussian()], views=halves())
    return ObscureClassifier(
        bank, C=1.0, p=1.5, features=RandomFourier(60), solver=DualAscent(tol=tol), random_state=0
    )


def test_partitions_solve_the_problem_of_all_samples(rng):
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    X[:, 0] += y
    bank = KernelBank([Linear(), Gaussian(gamma=0.2)])
    one = ObscureClassifier(bank, features=RandomFourier(20), solver=DualAscent(tol=1e-2), random_state=0)
    one.fit_partitions(np.array_split(X, 3), np.array_split(y, 3))
    assert one.duality_gap_ <= 1e-2
    assert encloses(one.bounds_, pnorm_optimum(feature_kernels(one, X), y, 1.0, 1.5))
    f = one.decision_function(X)
    loss = np.maximum(0, 1 + np.sort(np.where(np.eye(3)[y] > 0, -np.inf, f))[:, -1] - f[np.arange(90), y])
    value = np.linalg.norm(one.kernel_norms_, 1.5) ** 2 / (2 * 90) + loss.mean()
    assert value == pytest.approx(one.objective_)


def test_the_dual_never_falls_and_the_bundle_knows_its_coefficients(rng):
    Phi, y, weight = rng.normal(size=(60, 7)), rng.integers(0, 3, 60), rng.uniform(0.5, 2.0, 60)
    offsets, parts = np.array([0, 4, 7]), np.array_split(np.arange(60), 5)
    Ks = [Phi[:, a:b] @ Phi[:, a:b].T for a, b in pairwise(offsets)]
    A, bundle, values = np.zeros((60, 3)), DualBundle(5, (7, 3), max_groups=3), [0.0]
    for seed in range(6):
        shared = SharedTheta(bundle.theta.sum(axis=0), offsets, scale=0.5, q=3.0)
        updates = [update_partition(Phi[k], y[k], weight[k], A[k], shared, [seed]) for k in parts]
        lam = bundle.mix(updates, shared)
        for number, (k, update) in enumerate(zip(parts, updates, strict=True)):
            A[k] = bundle.mixed_rows(number, lam, A[k], update.step, y[k], weight[k])
        bundle.drop_cuts(lam)
        np.testing.assert_allclose(bundle.theta.sum(axis=0), Phi.T @ A, atol=1e-10)
        assert bundle.gain.sum() == pytest.approx(A[np.arange(60), y].sum())
        values.append(dual_value(Ks, A, y, 0.5, 3.0))
    assert values[-1] > 0.0
    assert (np.diff(values) >= -1e-12 * values[-1]).all()


def test_the_number_of_partitions_does_not_matter(some_digits):
    X, y = some_digits
    found = [model().fit_partitions(np.array_split(X, k), np.array_split(y, k)) for k in (1, 3)]
    assert found[0].duality_gap_ <= 1e-2
    assert found[1].score(X, y) > 0.9


def test_partitions_need_features_and_agreeing_labels(some_digits):
    X, y = some_digits
    with pytest.raises(ValueError, match="needs explicit features"):
        ObscureClassifier().fit_partitions([X], [y])
    with pytest.raises(ValueError, match="X has 1 partitions and y has 2"):
        model().fit_partitions([X], [y, y])
    with pytest.raises(TypeError, match="Dask array or frame, or a list"):
        model().fit_partitions(X, y)
    with pytest.raises(ValueError, match="1 class only"):
        model().fit_partitions([X], [0 * y])
    with pytest.warns(ConvergenceWarning, match="max_rounds=1"):
        model(1e-6).fit_partitions([X], [y], max_rounds=1)


@pytest.mark.parametrize("pieces", [2, 10, 20])
def test_partitions_close_the_gap_where_errors_cost_much(pieces):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    X = rng.normal(size=(120, 4))
    X[:, :2] += 0.8 * y[:, None]
    bank = KernelBank.per_view([Gaussian(gamma=0.3), Linear()], views={"u": [0, 1], "v": [2, 3]})
    model = ObscureClassifier(bank, C=10.0, features=RandomFourier(20), solver=DualAscent(tol=2e-3))
    model.set_params(random_state=0)
    model.fit_partitions(np.array_split(X, pieces), np.array_split(y, pieces), max_rounds=120)
    assert model.duality_gap_ <= 2e-3
    lower = [record.certificate.lower for record in model.history_]
    assert (np.diff(lower) >= 0.0).all()
    assert encloses(model.bounds_, pnorm_optimum(feature_kernels(model, X), y, 10.0, 1.5))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore:Sending large")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_loses_a_worker_gives_the_same_model(some_digits):
    array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
    distributed = pytest.importorskip("dask.distributed", reason="needs the extra [distributed]")
    X, y = some_digits
    expected = model(3e-2).fit_partitions(np.array_split(X, 3), np.array_split(y, 3))
    A, b = array.from_array(X, chunks=(300, 64)), array.from_array(y, chunks=300)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rounds, real = [], client.gather

        def gather(values, *args, **kwargs):
            rounds.append(1)
            if len(rounds) == 3:  # in the middle of a round, its work already given out
                next(iter(cluster.workers.values())).process.process.kill()
            return real(values, *args, **kwargs)

        client.gather = gather
        found = model(3e-2).fit_partitions(A, b, client=client)
    assert len(rounds) > 3
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-9)
    assert found.bounds_ == pytest.approx(expected.bounds_, rel=1e-9)


BANK = KernelBank([Linear(), Gaussian(gamma=0.2)])


def samples(n=60):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def small(**params):
    how = {"bank": BANK, "features": RandomFourier(20), "solver": DualAscent(tol=1e-2), "random_state": 0}
    return ObscureClassifier(**(how | params))


def in_two(values):
    return [values[:30], values[30:]]


def test_the_model_is_as_complete_as_that_of_a_fit():
    X, y = samples()
    one = small().fit_partitions(in_two(X), in_two(y))
    assert 0 < one.n_support_ <= 60
    assert len(one.history_) == one.n_iter_ > 1
    assert one.history_[-1].certificate == one.certificate_
    assert one.history_[-1].n_active == 2
    assert one.history_[0].seconds <= one.history_[-1].seconds
    with pytest.raises(ValueError, match="no set of training samples; pass Z"):
        one.combined_kernel(X[:3])
    assert one.combined_kernel(X[:3], X[:4]).shape == (3, 4)


def test_support_vectors_are_the_samples_with_coefficients():
    X, y = samples()
    at_once = small(C=0.1, solver=DualAscent(tol=1e-4)).fit(X, y)
    parts = small(C=0.1, solver=DualAscent(tol=1e-4)).fit_partitions([X], [y])
    assert at_once.n_support_ < 60
    assert abs(parts.n_support_ - at_once.n_support_) <= 3


def test_a_stream_continues_a_fit_on_partitions():
    X, y = samples()
    one = small().fit_partitions(in_two(X), in_two(y))
    before, count = one.decision_function(X), one.n_support_
    np.testing.assert_allclose(one._new_stream(X).scores(X), before, atol=1e-10)
    one.partial_fit(X[:10], y[:10])
    assert one.n_support_ >= count
    assert not hasattr(one, "bounds_")


def test_empty_partitions_are_passed_over():
    X, y = samples()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = small().fit_partitions([frame[:30], frame[30:]], in_two(y))
    found = small().fit_partitions(
        [frame[:0], frame[:30], frame[:0], frame[30:]], [y[:0], *in_two(y)[:1], [], y[30:]]
    )
    np.testing.assert_array_equal(found.decision_function(frame), expected.decision_function(frame))
    with pytest.raises(ValueError, match="In partition 1: X has 30 samples but y has 0 labels"):
        small().fit_partitions(in_two(frame), [y, []])


def with_nan(values):
    values = np.array(values, dtype=float)
    values[2] = np.nan
    return values


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda X, y: (X, [y[:30], with_nan(y[30:])]), "In partition 1: Input y contains NaN"),
        (lambda X, y: (X, [y[:30], y[30:] + 0.5]), "In partition 1: Unknown label type"),
        (lambda X, y: (X, [y[:30], y[31:]]), "In partition 1: X has 30 samples but y has 29 labels"),
        (lambda X, y: (X, [y[:30], np.r_[y[30:], 0]]), "In partition 1: X has 30 samples but y has 31"),
        (lambda X, y: (X, [y[:30], y[30:].astype(str)]), "text and some hold numbers"),
        (lambda X, y: ([X[0], with_nan(X[1])], in_two(y)), "In partition 1: Row 2 of X lacks view"),
        (lambda X, y: ([X[0], X[1][:, :2]], in_two(y)), "In partition 1: X has 2 features"),
        (lambda X, y: ([X[0], np.full((30, 3), 1.5e308)], in_two(y)), "In partition 1: The features of a"),
        (lambda X, _: (X, [None, None]), "y is None"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_a_partition_with_an_error_is_named(spoil, match):
    X, y = samples()
    with pytest.raises(ValueError, match=match):
        small().fit_partitions(*spoil(in_two(X), y))


@pytest.mark.parametrize(
    ("params", "rounds", "match"),
    [
        ({}, -1, "max_rounds must be a whole number of at least 1; got -1"),
        ({}, 1.5, "max_rounds must be"),
        ({"solver": Pegasos(3)}, 5, r"solver must be DualAscent\(tol=...\) or None; got Pegasos"),
        ({"solver": OnlineBatch(3)}, 5, "solver must be DualAscent"),
        ({"checkpoint": "state.npz"}, 5, "fit_partitions writes no checkpoint"),
    ],
)
def test_what_could_only_be_ignored_is_refused(params, rounds, match):
    X, y = samples()
    with pytest.raises(ValueError, match=match):
        small(**params).fit_partitions(in_two(X), in_two(y), max_rounds=rounds)


def test_progress_is_shown(capsys):
    X, y = samples()
    small(verbose=2).fit_partitions(in_two(X), in_two(y))
    assert re.search(r"round [1-9]", capsys.readouterr().out)
