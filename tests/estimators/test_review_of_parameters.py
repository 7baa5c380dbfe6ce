"""Parameters that were ignored, or refused with somebody else's sentence."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    EasyMKLClassifier,
    FHeuristicClassifier,
    FisherMKLClassifier,
    KernelBank,
    LPBetaClassifier,
    ObscureClassifier,
    RandomFourier,
    batches,
    path,
)
from kernelweave.kernels import Gaussian, Linear
from kernelweave.solvers import DualAscent

BANK = KernelBank([Linear(), Gaussian(gamma=0.2)])


def samples(n=60):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def test_explicit_features_heed_the_memory_limit():
    X, y = samples()
    model = ObscureClassifier(BANK, features=RandomFourier(40), memory_limit=1000.0)
    with pytest.raises(MemoryError, match=r"43 features of 60 samples need .* but 1 KB may be used"):
        model.fit(X, y)
    with pytest.raises(MemoryError, match=r"43 features of 60 samples in all partitions need"):
        model.fit_partitions([X[:30], X[30:]], [y[:30], y[30:]])


def test_the_joint_discriminant_says_that_it_cuts_no_axis():
    X, y = samples()
    model = FisherMKLClassifier(BANK, multiclass="joint", threshold="zero")
    with pytest.raises(ValueError, match=r"leave threshold at 'midpoint'.*got threshold='zero'"):
        model.fit(X, y)
    model.fit(X, y > 0)  # two classes have an axis
    model.set_params(threshold="midpoint").fit(X, y)


@pytest.mark.parametrize("kind", [LPBetaClassifier, ObscureClassifier])
def test_models_without_a_path_say_so(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} has none: fit it once per value"):
        path(kind(BANK), *samples(), param="learner__C", values=[1.0])


def test_two_step_models_walk_what_leaves_the_kernels_as_they_are():
    X, y = samples()
    walk = path(EasyMKLClassifier(BANK), X, y, param="lam", values=[0.1, 0.5])
    for lam, weights in zip(walk.values, walk.kernel_weights, strict=True):
        alone = EasyMKLClassifier(BANK, lam=lam).fit(X, y).kernel_weights_
        np.testing.assert_allclose(weights, alone, atol=1e-6)
    for model in (EasyMKLClassifier(BANK), FHeuristicClassifier(BANK)):
        with pytest.raises(ValueError, match=r"begin with learner__.*got 'geometry__p'"):
            path(model, X, y, param="geometry__p", values=[2.0])


def test_a_fit_that_failed_does_not_stand_in_the_way_of_a_stream():
    X, y = samples()
    model = ObscureClassifier(BANK, solver=DualAscent(tol=1e-2))
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0"):
        model.set_params(bank=KernelBank([Linear()])).fit(np.vstack([X, 0 * X[:1]]), np.r_[y, 7])
    model.partial_fit(X, y, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_batches_have_a_size(size):
    with pytest.raises(ValueError, match="size must be a whole number of at least 1"):
        list(batches(*samples(), size=size))


def test_batches_pair_samples_with_their_labels(tmp_path):
    X, y = samples(25)
    for labels in (y[:-1], np.r_[y, 0]):
        with pytest.raises(ValueError, match=f"X has 25 samples but y has {len(labels)} labels"):
            list(batches(X, labels, size=10))
    assert [(len(part), labels) for part, labels in batches(X, size=10)] == [
        (10, None),
        (10, None),
        (5, None),
    ]
    parts = list(batches(X.tolist(), y.tolist(), size=10))
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in parts]), y)
    np.testing.assert_array_equal(np.vstack([part for part, _ in parts]), X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y)
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"one of \['a', 'b', 'c', 'label'\]; got 'typo'"):
        list(batches(tmp_path / "x.parquet", "typo"))
    assert [labels for _, labels in batches(tmp_path / "x.parquet")] == [None]
    array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
    A = array.from_array(X, chunks=(10, 3))
    assert [labels for _, labels in batches(A)] == [None] * 3
    with pytest.raises(ValueError, match="X has 3 partitions and y has 1"):
        list(batches(A, array.from_array(y, chunks=25)))
    with pytest.raises(ValueError, match="one too, cut alike; got ndarray"):
        list(batches(A, y))
