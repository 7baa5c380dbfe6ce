"""What fit_partitions takes, what it refuses, and what it leaves behind."""

import re

import numpy as np
import pandas as pd
import pytest

from kernelweave import KernelBank, ObscureClassifier, RandomFourier
from kernelweave.kernels import Gaussian, Linear
from kernelweave.solvers import DualAscent, OnlineBatch, Pegasos

BANK = KernelBank([Linear(), Gaussian(gamma=0.2)])


def samples(n=60):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def model(**params):
    how = {"bank": BANK, "features": RandomFourier(20), "solver": DualAscent(tol=1e-2), "random_state": 0}
    return ObscureClassifier(**(how | params))


def halves(values):
    return [values[:30], values[30:]]


def test_the_model_is_as_whole_as_that_of_a_fit():
    X, y = samples()
    one = model().fit_partitions(halves(X), halves(y))
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
    whole = model(C=0.1, solver=DualAscent(tol=1e-4)).fit(X, y)
    parts = model(C=0.1, solver=DualAscent(tol=1e-4)).fit_partitions([X], [y])
    assert whole.n_support_ < 60
    assert abs(parts.n_support_ - whole.n_support_) <= 3


def test_a_stream_goes_on_from_partitions():
    X, y = samples()
    one = model().fit_partitions(halves(X), halves(y))
    before, count = one.decision_function(X), one.n_support_
    np.testing.assert_allclose(one._new_stream(X).scores(X), before, atol=1e-10)
    one.partial_fit(X[:10], y[:10])
    assert one.n_support_ >= count
    assert not hasattr(one, "bounds_")


def test_empty_partitions_are_passed_over():
    X, y = samples()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = model().fit_partitions([frame[:30], frame[30:]], halves(y))
    found = model().fit_partitions(
        [frame[:0], frame[:30], frame[:0], frame[30:]], [y[:0], *halves(y)[:1], [], y[30:]]
    )
    np.testing.assert_array_equal(found.decision_function(frame), expected.decision_function(frame))
    with pytest.raises(ValueError, match="In partition 1: X has 30 samples but y has 0 labels"):
        model().fit_partitions(halves(frame), [y, []])


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
        (lambda X, y: ([X[0], with_nan(X[1])], halves(y)), "In partition 1: Input X contains NaN"),
        (lambda X, y: ([X[0], X[1][:, :2]], halves(y)), "In partition 1: X has 2 features"),
        (lambda X, y: ([X[0], np.full((30, 3), 1.5e308)], halves(y)), "In partition 1: The features of a"),
        (lambda X, _: (X, [None, None]), "y is None"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_a_partition_with_an_error_is_named(spoil, match):
    X, y = samples()
    with pytest.raises(ValueError, match=match):
        model().fit_partitions(*spoil(halves(X), y))


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
        model(**params).fit_partitions(halves(X), halves(y), max_rounds=rounds)


def test_progress_is_shown(capsys):
    X, y = samples()
    model(verbose=2).fit_partitions(halves(X), halves(y))
    assert re.search(r"round [1-9]", capsys.readouterr().out)
