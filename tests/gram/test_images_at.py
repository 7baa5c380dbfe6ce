"""Products of which only some entries are asked for: right there, however the kernels are held."""

import numpy as np
import pytest

from kernelweave.gram import LazyGrams, MatrixSource, PackedGrams
from kernelweave.gram.joined import JoinedGrams
from kernelweave.gram.protocol import images_at

M = 5


def stack_of(held, Ks, n, n_threads):
    sources = [MatrixSource(Ks)]
    if held == "by reference":
        return LazyGrams(sources, M, n, centre=True, n_threads=n_threads)
    packed = PackedGrams.pack(
        sources, M, n, "float32" if held == "float32" else "float64", n_threads=n_threads
    )
    if held != "joined":
        return packed
    parts = [packed.subset(np.array([0, 2])), packed.subset(np.array([1, 3, 4]))]
    return JoinedGrams(parts[0], [parts[1]], [np.array([0, 2]), np.array([1, 3, 4])], n_threads)


@pytest.mark.parametrize("held", ["float32", "float64", "by reference", "joined"])
@pytest.mark.parametrize("n", [1, 5, 37])
@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_entries_asked_for_are_those_of_the_product(rng, held, n, columns, share):
    roots = rng.normal(size=(M, n, n))
    Ks = [np.ascontiguousarray(R @ R.T) for R in roots]
    shape = (n,) if columns is None else (n, columns)
    where = rng.random(shape) < share
    coef = np.where(where & (rng.random(shape) < 0.7), rng.normal(size=shape), 0.0)  # zero also where asked
    coef = coef - np.where(where, coef.sum(axis=0) / np.maximum(where.sum(axis=0), 1), 0.0)  # sums to zero
    stack = stack_of(held, Ks, n, n_threads=2)
    shifts = stack.shifts
    found = stack.images_at(coef, where)
    assert found.shape == (M, *shape)
    for m in range(M):
        centred = Ks[m] - shifts[m][:, None] - shifts[m][None, :]
        expected = (centred @ coef)[where]
        np.testing.assert_allclose(
            found[m][where], expected, rtol=1e-5, atol=1e-5 * np.abs(centred).max() * n
        )


def test_a_stack_that_cannot_look_at_some_looks_at_all(rng):
    class Plain:
        def images(self, coef):
            return np.stack([2.0 * coef])

    np.testing.assert_array_equal(images_at(Plain(), np.ones(3), np.zeros(3, dtype=bool)), [[2.0, 2.0, 2.0]])
