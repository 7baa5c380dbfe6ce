"""Stacks with weights per sample: the same verbs, however the kernels are held."""

import numpy as np
import pytest

from kernelweave.adaptive.local_grams import LocalGrams, weighted_locally
from kernelweave.gram import DenseGrams, MatrixSource, PackedGrams


@pytest.fixture
def matrices(rng):
    return [A @ A.T for A in rng.normal(size=(4, 30, 12))]


def packed(matrices, dtype="float64", centre=False):
    return PackedGrams.pack([MatrixSource(matrices)], 4, 30, dtype, centre, 2)


STACKS = {"packed": packed, "float32": lambda Ks: packed(Ks, "float32"), "by reference": DenseGrams}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_the_verbs_are_those_of_the_weighted_matrices(rng, matrices, name, columns):
    local = rng.random((4, 30)) * (rng.random((4, 30)) < 0.7)
    stack = weighted_locally(STACKS[name](matrices), local)
    weighted = [K * np.outer(e, e) for K, e in zip(matrices, local, strict=True)]
    V, eta = rng.normal(size=(30, *columns)), np.array([0.3, 0.0, 2.0, 0.1])
    tolerance = dict(rtol=1e-5, atol=1e-4) if name == "float32" else dict(rtol=1e-10, atol=1e-9)
    total = sum(w * K for w, K in zip(eta, weighted, strict=True))
    np.testing.assert_allclose(stack.combine(eta), total, **tolerance)
    np.testing.assert_allclose(stack.images(V), [K @ V for K in weighted], **tolerance)
    np.testing.assert_allclose(stack.energies(V), [0.5 * np.vdot(V, K @ V) for K in weighted], **tolerance)
    expected = [K @ (e.reshape(30, *[1] * len(columns)) * V) for K, e in zip(matrices, local, strict=True)]
    np.testing.assert_allclose(stack.column_weighted_matvecs(V), expected, **tolerance)
    assert (stack.sizes >= [np.diagonal(K).max() for K in weighted]).all()
    assert stack.is_rounded == (name == "float32")
    assert np.all(stack.offset(eta, V) == 0.0)


def test_some_kernels_may_be_taken_out(rng, matrices):
    local, which = rng.random((4, 30)), np.array([2, 0])
    v = rng.normal(size=30)
    for grams in (packed(matrices), DenseGrams(matrices)):
        stack = weighted_locally(grams, local)
        np.testing.assert_allclose(stack.subset(which).images(v), stack.images(v)[which], atol=1e-9)


def test_no_matrix_is_written_down(matrices):
    grams = packed(matrices)
    assert weighted_locally(grams, np.ones((4, 30))).packed is grams


def test_centred_storage_is_refused_because_its_origin_is_gone(matrices):
    with pytest.raises(TypeError, match="uncentred"):
        weighted_locally(packed(matrices, centre=True), np.ones((4, 30)))
    assert isinstance(weighted_locally(packed(matrices), np.ones((4, 30))), LocalGrams)
