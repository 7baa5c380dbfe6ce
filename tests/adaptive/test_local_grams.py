"""Stacks with weights per sample: the same verbs, however the kernels are held."""

import numpy as np
import pytest

from kernelweave import KernelBank
from kernelweave.adaptive.local_grams import (
    LocalGrams,
    StreamedLocalGrams,
    as_weightable,
    weighted_locally,
)
from kernelweave.gram import DenseGrams, StreamedGrams
from kernelweave.gram.source import matrix_sources
from kernelweave.kernels import Gaussian, Laplacian, Linear, Polynomial, UnitDiagonal


@pytest.fixture
def matrices(rng):
    return [A @ A.T for A in rng.normal(size=(4, 30, 12))]


def packed(matrices, dtype="float64", centre=False):
    return DenseGrams(matrices, centre=centre, n_threads=2).packed(dtype)


def streamed(matrices, **how):
    return StreamedGrams(matrix_sources(matrices), 4, 30, **how)


STACKS = {
    "packed": packed,
    "float32": lambda Ks: packed(Ks, "float32"),
    "as given": lambda Ks: as_weightable(DenseGrams(Ks)),
    "streamed": streamed,
    "streamed in float32": lambda Ks: streamed(Ks, dtype="float32"),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_the_verbs_are_those_of_the_weighted_matrices(rng, matrices, name, columns):
    local = rng.random((4, 30)) * (rng.random((4, 30)) < 0.7)
    stack = weighted_locally(STACKS[name](matrices), local)
    weighted = [K * np.outer(e, e) for K, e in zip(matrices, local, strict=True)]
    V, eta = rng.normal(size=(30, *columns)), np.array([0.3, 0.0, 2.0, 0.1])
    tolerance = dict(rtol=1e-5, atol=1e-4) if "float32" in name else dict(rtol=1e-10, atol=1e-9)
    total = sum(w * K for w, K in zip(eta, weighted, strict=True))
    np.testing.assert_allclose(stack.combine(eta), total, **tolerance)
    np.testing.assert_allclose(stack.matvecs(V), [K @ V for K in weighted], **tolerance)
    np.testing.assert_allclose(stack.matvec_with_error(eta, V)[0], total @ V, **tolerance)
    np.testing.assert_allclose(stack.energies(V), [0.5 * np.vdot(V, K @ V) for K in weighted], **tolerance)
    expected = [K @ (e.reshape(30, *[1] * len(columns)) * V) for K, e in zip(matrices, local, strict=True)]
    np.testing.assert_allclose(stack.column_weighted_matvecs(V), expected, **tolerance)
    assert (stack.sizes >= [np.diagonal(K).max() for K in weighted]).all()
    assert stack.is_rounded == ("float32" in name)
    assert np.all(stack.offset(eta, V) == 0.0)


@pytest.mark.parametrize("held", [packed, streamed])
def test_some_kernels_or_samples_may_be_taken_out(rng, matrices, held):
    local, which, rows = rng.random((4, 30)), np.array([2, 0]), np.array([1, 4, 5, 20])
    v, few = rng.normal(size=30), rng.normal(size=4)
    stack = weighted_locally(held(matrices), local)
    np.testing.assert_allclose(stack.subset(which).matvecs(v), stack.matvecs(v)[which], atol=1e-9)
    expected = [(K * np.outer(e, e))[np.ix_(rows, rows)] @ few for K, e in zip(matrices, local, strict=True)]
    np.testing.assert_allclose(stack.sample(rows).matvecs(few), expected, atol=1e-9)


def test_no_matrix_is_written_down(matrices):
    grams = packed(matrices)
    assert as_weightable(grams) is grams
    assert weighted_locally(grams, np.ones((4, 30))).packed is grams


@pytest.mark.parametrize("held", [packed, DenseGrams])
def test_centred_storage_is_refused_because_its_origin_is_gone(matrices, held):
    with pytest.raises(TypeError, match="uncentred"):
        weighted_locally(held(matrices, centre=True), np.ones((4, 30)))


def test_each_way_of_holding_kernels_keeps_its_own(matrices):
    assert isinstance(weighted_locally(packed(matrices), np.ones((4, 30))), LocalGrams)
    assert isinstance(weighted_locally(streamed(matrices), np.ones((4, 30))), StreamedLocalGrams)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scaling", [None, UnitDiagonal()])
def test_kernels_of_a_table_are_weighted_while_they_are_computed(rng, dtype, scaling):
    X, local, V = rng.normal(size=(30, 3)), rng.random((4, 30)), rng.normal(size=(30, 2))
    fitted = KernelBank([Gaussian(), Laplacian(), Linear(), Polynomial(degree=2)], scaling=scaling).fit(X)
    weighted = [K * np.outer(e, e) for K, e in zip(fitted.grams(), local, strict=True)]
    stack = weighted_locally(StreamedGrams(fitted.sources(), 4, 30, dtype=dtype, n_threads=2), local)
    tolerance = dict(rtol=1e-5, atol=1e-4) if dtype == "float32" else dict(rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(stack.combine(np.ones(4)), sum(weighted), **tolerance)
    np.testing.assert_allclose(stack.matvecs(V), [K @ V for K in weighted], **tolerance)
    np.testing.assert_allclose(stack.energies(V), [0.5 * np.vdot(V, K @ V) for K in weighted], **tolerance)
    expected = [K @ (e[:, None] * V) for K, e in zip(fitted.grams(), local, strict=True)]
    np.testing.assert_allclose(stack.column_weighted_matvecs(V), expected, **tolerance)
