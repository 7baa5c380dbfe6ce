"""Memory is used again when nobody refers to it, and never before."""

import gc
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kernelweave.gram import MatrixSource, PackedGrams, scratch
from kernelweave.gram.scratch import forget, lease


@pytest.fixture(autouse=True)
def afresh():
    forget()
    yield
    forget()


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_is_used_again_once_it_is_free(dtype):
    first = lease((3, 50), dtype)
    place = address(first)
    assert first.shape == (3, 50)
    assert first.dtype == dtype
    assert first.flags.c_contiguous
    first[:] = 1.0
    del first
    second = lease((2, 50), "float32", n_threads=2)
    assert address(second) == place
    assert second.shape == (2, 50)


@pytest.mark.parametrize(
    "keep", [lambda a: a, lambda a: a[1:], lambda a: a.T[::2], memoryview, lambda a: a.flat]
)
def test_memory_in_use_is_left_alone(keep):
    first = lease((4, 20), "float64")
    first[:] = 7.0
    kept = keep(first)
    del first
    gc.collect()
    second = lease((4, 20), "float64")
    second[:] = 0.0
    assert (np.array(kept) == 7.0).all()


def test_more_is_had_where_less_was_kept_and_what_is_large_is_not_kept(monkeypatch):
    lease((10,), "float64")
    assert lease((1000,), "float64").size == 1000
    assert scratch._kept[0].nbytes == 8000
    monkeypatch.setattr(scratch, "LARGEST", 8000)
    assert lease((1001,), "float64").size == 1001
    assert scratch._kept[0].nbytes == 8000
    forget()
    assert not scratch._kept
    assert lease((3,), "float32").nbytes == 12  # half a number is rounded up
    assert lease((0, 0), "float32").size == 0


def test_fits_side_by_side_do_not_share_their_memory(rng):
    def energy(seed):
        K = np.full((40, 40), float(seed))
        totals = []
        for _ in range(50):
            stack = PackedGrams.pack([MatrixSource([K])], 1, 40, "float64", centre=False)
            totals.append(stack.energies(np.ones(40))[0])
        return totals

    with ThreadPoolExecutor(4) as pool:
        for seed, totals in enumerate(pool.map(energy, range(1, 9)), start=1):
            np.testing.assert_allclose(totals, 0.5 * seed * 1600.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_does_not_wait_for_a_lock_its_parent_held():
    lease((10,), "float64")
    with scratch._lock:
        process = multiprocessing.get_context("fork").Process(target=lease, args=((10,), "float64"))
        process.start()
    process.join(30.0)
    assert process.exitcode == 0
