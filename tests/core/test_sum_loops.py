"""Sums that keep part of what they were, and the threads that add them up."""

import os
import threading

import numpy as np
import pytest
from tests.reference import loops

from kernelweave import _core

DTYPES = [np.float32, np.float64]


def random_grams(rng, n_kernels, n):
    return [A @ A.T for A in rng.normal(size=(n_kernels, n, 9))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n", [1, 40, 65, 1100])
def test_a_sum_keeps_part_of_what_it_was(rng, n, dtype, n_threads):
    matrices = random_grams(rng, 5, n)
    before, change, keep, shift = rng.random(5), np.array([0.0, 0.3, 0.0, 0.0, -0.2]), 0.7, rng.normal(size=n)
    total = np.tensordot(keep * before + change, matrices, axes=1)
    packed = np.array([A[np.tril_indices(n)] for A in matrices], dtype=dtype)
    packed[[0, 2, 3]] = np.nan  # which is not looked at
    close = dict(rtol=0.0, atol=32 * np.finfo(dtype).eps * np.abs(total).max())
    K = np.tensordot(before, matrices, axes=1).astype(dtype)
    _core.combine(packed, change, K, n_threads, keep)
    np.testing.assert_allclose(K, total, **close)
    np.testing.assert_array_equal(K, K.T)
    K = np.tensordot(before, matrices, axes=1).astype(dtype)
    K[np.triu_indices(n, 1)] = np.nan  # neither is this
    given = [A if w else np.full_like(A, np.nan) for A, w in zip(matrices, change, strict=True)]
    _core.combine_all(given, change, shift, K, n_threads, keep)
    np.testing.assert_allclose(K, total - shift[:, None] - shift, **close)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n", [1, 63, 130])
def test_rows_are_as_long_as_their_euclidean_norm(rng, n, n_threads):
    K, lengths = rng.normal(size=(n, n)).astype(np.float32), np.empty(n)
    _core.lengths(K, lengths, n_threads)
    np.testing.assert_allclose(lengths, np.linalg.norm(K.astype(np.float64), axis=1), rtol=1e-13)
    with pytest.raises(ValueError, match="square"):
        _core.lengths(K, np.empty(n + 1), n_threads)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen on this system")
def test_threads_do_their_work_where_there_is_one_core_only(rng):
    packed = np.array([A[np.tril_indices(50)] for A in random_grams(rng, 4, 50)])
    eta, K = rng.random(4), np.empty((50, 50))

    def on_one_core():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of this thread
        _core.combine(packed, eta, K, 3)

    thread = threading.Thread(target=on_one_core)
    thread.start()
    thread.join()
    np.testing.assert_allclose(K, loops.combine(packed, eta), rtol=1e-12)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores cannot be chosen on this system")
def test_where_threads_begin_leaves_their_caller_free(rng):
    packed = np.array([A[np.tril_indices(50)] for A in random_grams(rng, 4, 50)])
    allowed = os.sched_getaffinity(0)
    _core.combine(packed, rng.random(4), np.empty((50, 50)), 4)
    assert os.sched_getaffinity(0) == allowed
