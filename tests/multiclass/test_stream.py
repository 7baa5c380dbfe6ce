"""Streams: partial_fit on kernels and on explicit features, and batches from wherever samples are."""

import pickle

import numpy as np
import pandas as pd
import pytest
from tests.reference.pnorm import Vectors

from kernelweave import KernelBank, Nystroem, ObscureClassifier, RandomFourier, Views, batches
from kernelweave.kernels import Gaussian, Linear, UnitDiagonal
from kernelweave.solvers import DualAscent

TWO_KERNELS = KernelBank([Linear(), Gaussian(gamma=0.2)])


def streamed(model, X, y, size=100):
    classes = np.unique(y)
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        model.partial_fit(X[part], y[part], classes=classes if start == 0 else None)
    return model


def test_a_stream_on_kernels_is_algorithm_one_in_order(digits):
    X, y = digits[0][:120], digits[1][:120] % 3
    bank = KernelBank([Linear(), Gaussian(gamma=0.1)])
    Ks = np.array(list(bank.fit(X).grams()))
    for size in (17, 120):
        model = streamed(ObscureClassifier(bank, p=1.3), X, y, size)
        twin = Vectors(Ks, y, 1.3)
        for i in range(120):
            twin.online(i, 2.0)
        np.testing.assert_allclose(model.decision_function(X), twin.decision(), atol=1e-7)
        np.testing.assert_allclose(model.kernel_norms_, [np.linalg.norm(w) for w in twin.w()], rtol=1e-7)
        assert model.n_support_ <= 120


@pytest.mark.parametrize(("features", "limit"), [(None, 3e4), (RandomFourier(20), 3e4)])
def test_a_batch_too_large_for_memory_comes_in_pieces(digits, monkeypatch, features, limit):
    X, y = digits[0][:120], digits[1][:120] % 3
    bank = KernelBank([Gaussian(gamma=0.1), Gaussian(gamma=0.3)])
    uncut = ObscureClassifier(bank, features=features, random_state=0)
    uncut.partial_fit(X, y, classes=range(3)).partial_fit(X[::-1], y[::-1])
    sizes = []

    def watched(stream, piece, *rest):
        sizes.append(len(piece))
        return updated(stream, piece, *rest)

    kind = type(uncut.stream_)
    updated = kind.updated
    monkeypatch.setattr(kind, "updated", watched)
    cut = ObscureClassifier(bank, features=features, random_state=0, memory_limit=limit)
    cut.partial_fit(X, y, classes=range(3)).partial_fit(X[::-1], y[::-1])
    assert sum(sizes) == 240
    assert len(sizes) > 6
    if features is None:
        assert all(16 * 2 * b * b <= limit for b in sizes)
        assert sizes[0] > max(sizes[-3:])  # the more samples are kept, the fewer may come at once
    np.testing.assert_allclose(cut.decision_function(X), uncut.decision_function(X), atol=1e-9)
    assert cut.n_support_ == uncut.n_support_


@pytest.mark.parametrize(
    ("features", "match"),
    [
        (None, r"2 kernels .* need .* for a single sample, but 100 B may be used"),
        (RandomFourier(20), r"84 features need .* but 100 B may be used"),
    ],
)
def test_too_little_memory_for_one_sample_is_refused_with_numbers(digits, features, match):
    X, y = digits
    bank = KernelBank([Gaussian(), Linear()])
    model = ObscureClassifier(bank, features=features, memory_limit=100.0)
    with pytest.raises(MemoryError, match=match):
        model.partial_fit(X[:20], y[:20], classes=range(10))


def test_targets_of_a_batch_labelled_in_another_order_are_refused(digits):
    X, y = pd.DataFrame(digits[0][:50]), pd.Series(digits[1][:50])
    with pytest.raises(ValueError, match="labelled in another order than those of X"):
        ObscureClassifier(KernelBank([Gaussian()])).partial_fit(X, y.sort_values(), classes=range(10))


def test_a_sample_without_length_is_named_by_its_place_in_the_batch(digits):
    X, y = digits
    X = np.where(np.arange(100)[:, None] == 93, 0.0, X[:100])
    model = ObscureClassifier(KernelBank([Linear()]), memory_limit=2e4)
    with pytest.raises(ValueError, match=r"Sample 93 has k\(x, x\) = 0"):
        model.partial_fit(X, y[:100], classes=range(10))


@pytest.mark.parametrize("features", [None, RandomFourier(100), Nystroem(60)])
def test_a_stream_learns_and_can_be_pickled_on_the_way(digits, features):
    X, y = digits
    bank = KernelBank([Gaussian()], scaling=UnitDiagonal()) if features is None else KernelBank([Gaussian()])
    model = ObscureClassifier(bank, features=features, random_state=0)
    streamed(model, X[:600], y[:600])
    early = model.score(X[1200:], y[1200:])
    model = pickle.loads(pickle.dumps(model))
    for start in range(600, 1200, 200):
        model.partial_fit(X[start : start + 200], y[start : start + 200])
    assert model.score(X[1200:], y[1200:]) > max(early - 0.03, 0.8)
    assert not hasattr(model, "bounds_")
    assert (model.kernel_weights_ > 0).all()


def test_explicit_features_keep_memory_constant(digits):
    X, y = digits
    model = streamed(
        ObscureClassifier(features=RandomFourier(20), bank=KernelBank([Gaussian()])), X[:200], y[:200]
    )
    size = len(pickle.dumps(model))
    streamed_on = pickle.loads(pickle.dumps(model))
    for start in range(200, 1700, 100):
        streamed_on.partial_fit(X[start : start + 100], y[start : start + 100])
    assert abs(len(pickle.dumps(streamed_on)) - size) < 64
    assert streamed_on.n_support_ > model.n_support_


@pytest.mark.parametrize("features", [None, RandomFourier(50)])
def test_a_stream_continues_a_fit(digits, features):
    X, y = digits
    model = ObscureClassifier(
        KernelBank([Gaussian()]), features=features, solver=DualAscent(tol=1e-2), random_state=0
    ).fit(X[:300], y[:300])
    before = model.decision_function(X[300:400])
    stream = model._new_stream(X)
    np.testing.assert_allclose(stream.scores(X[300:400]), before, atol=1e-10)
    weights, norms = stream.rule.weights_and_norms(stream.s)
    np.testing.assert_allclose(weights, model.kernel_weights_)
    np.testing.assert_allclose(norms, model.kernel_norms_)
    model.partial_fit(X[300:400], y[300:400])
    assert model.score(X[300:400], y[300:400]) >= np.mean(before.argmax(axis=1) == y[300:400]) - 0.05


def test_views_stream_too(digits):
    X, y = digits
    views = Views({"up": X[:, :32], "down": X[:, 32:]})
    model = ObscureClassifier(KernelBank.per_view([Gaussian()]))
    for start in range(0, 600, 200):
        model.partial_fit(views[start : start + 200], y[start : start + 200], classes=range(10))
    assert model.score(views[600:900], y[600:900]) > 0.7


@pytest.mark.parametrize("features", [None, RandomFourier(30)])
@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda X, y: (np.where(np.arange(64) == 3, np.inf, X), y), "inf"),
        (
            lambda X, y: (X, np.where(np.arange(len(y)) == 2, 77, y)),
            r"labels \[77\] are not among the classes",
        ),
        (lambda X, y: (X[:, :9], y), "features"),
        (lambda X, y: (X, y[:-1]), "must agree"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
    ],
)
def test_a_bad_batch_leaves_the_model_as_it_was(digits, features, spoil, match):
    X, y = digits
    model = ObscureClassifier(KernelBank([Gaussian()]), features=features, random_state=0)
    streamed(model, X[:200], y[:200])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(*spoil(X[200:250], y[200:250]))
    assert pickle.dumps(model) == before
    fresh = ObscureClassifier(KernelBank([Gaussian()]), features=features)
    with pytest.raises(ValueError):
        fresh.partial_fit(*spoil(X[:50], y[:50]), classes=range(10) if match != "features" else [1])
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_a_sample_without_length_leaves_the_model_as_it_was(digits):
    X, y = digits
    for features in (None, RandomFourier(10)):
        model = ObscureClassifier(KernelBank([Linear()]), features=features)
        streamed(model, X[:100], y[:100])
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=r"Sample 1 has k\(x, x\) = 0"):
            model.partial_fit(np.vstack([X[0], 0 * X[0]]), y[:2])
        assert pickle.dumps(model) == before


def test_the_first_call_names_the_classes_and_later_ones_do_not_change_them(digits):
    X, y = digits
    with pytest.raises(ValueError, match="first call of partial_fit needs classes="):
        ObscureClassifier().partial_fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="at least 2 classes"):
        ObscureClassifier().partial_fit(X[:20], y[:20], classes=[1])
    model = ObscureClassifier().partial_fit(X[:20], y[:20], classes=range(10))
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.partial_fit(X[:20], y[:20], classes=range(11))
    with pytest.raises(ValueError, match="no set of training samples"):
        model.combined_kernel(X[:3])
    assert model.combined_kernel(X[:3], X[:4]).shape == (3, 4)


def test_precomputed_kernels_do_not_stream():
    with pytest.raises(ValueError, match="later batches have no"):
        ObscureClassifier("precomputed").partial_fit(np.eye(3)[:, :, None], [0, 1, 0], classes=[0, 1])


def test_sample_weights_scale_the_steps(digits):
    X, y = digits
    model = ObscureClassifier(KernelBank([Linear()]))
    model.partial_fit(X[:50], y[:50], classes=range(10), sample_weight=np.r_[np.ones(25), np.zeros(25)])
    alone = ObscureClassifier(KernelBank([Linear()])).partial_fit(X[:25], y[:25], classes=range(10))
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-10)
    double = ObscureClassifier(KernelBank([Linear()]), class_weight={3: 2.0})
    double.partial_fit(X[:50], y[:50], classes=range(10))
    assert double.n_support_ > 0
    with pytest.raises(ValueError, match="a dict of class to factor, or None in a stream"):
        ObscureClassifier(class_weight="balanced").partial_fit(X[:50], y[:50], classes=range(10))


def test_batches_come_from_arrays_memory_maps_and_parquet(digits, tmp_path):
    X, y = digits[0][:900], digits[1][:900]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    frame = pd.DataFrame(X, columns=[f"pixel {k}" for k in range(64)]).assign(label=y)
    frame.to_parquet(tmp_path / "digits.parquet")
    sources = {
        "array": (X, y),
        "map": (tmp_path / "X.npy", tmp_path / "y.npy"),
        "parquet": (tmp_path / "digits.parquet", "label"),
    }
    values = {}
    for name, source in sources.items():
        stream = ObscureClassifier(KernelBank([Gaussian()]), features=RandomFourier(50), random_state=0)
        for part, labels in batches(*source, size=200):
            stream.partial_fit(part, labels, classes=range(10))
        values[name] = stream.decision_function(frame.drop(columns="label") if name == "parquet" else X)
        assert stream.score(X if name != "parquet" else frame.drop(columns="label"), y) > 0.8
    np.testing.assert_allclose(values["array"], values["map"], atol=1e-12)
    np.testing.assert_allclose(values["array"], values["parquet"], atol=1e-12)
    with pytest.raises(ValueError, match="name of the column"):
        next(batches(tmp_path / "digits.parquet", y))


def test_batches_come_from_dask(digits):
    array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
    X, y = digits[0][:900], digits[1][:900]
    A, b = array.from_array(X, chunks=(300, 64)), array.from_array(y, chunks=300)
    parts = list(batches(A, b, size=200))
    assert [len(labels) for _, labels in parts] == [200, 100] * 3
    np.testing.assert_array_equal(np.vstack([part for part, _ in parts]), X)
    with pytest.raises(ValueError, match="rechunk"):
        list(batches(array.from_array(X, chunks=(300, 32)), b))


def three_classes(n=60):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def test_a_fit_that_failed_does_not_stand_in_the_way_of_a_stream():
    X, y = three_classes()
    model = ObscureClassifier(TWO_KERNELS, solver=DualAscent(tol=1e-2))
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0"):
        model.set_params(bank=KernelBank([Linear()])).fit(np.vstack([X, 0 * X[:1]]), np.r_[y, 7])
    model.partial_fit(X, y, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("p", [1.3, 2.0])
def test_a_stream_after_a_fit_knows_the_lengths_of_its_vectors(p):
    X, y = three_classes()
    model = ObscureClassifier(TWO_KERNELS, p=p, solver=DualAscent(tol=1e-2), random_state=0).fit(X, y)
    q = p / (p - 1.0)
    theta = np.zeros((3, len(y)))
    theta[:, model.support_] = q * model.dual_coef_
    expected = [np.trace(theta @ K @ theta.T) for K in TWO_KERNELS.fit(X).grams()]
    np.testing.assert_allclose(model._new_stream(X).s, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_batches_have_a_size(size):
    with pytest.raises(ValueError, match="size must be a whole number of at least 1"):
        list(batches(*three_classes(), size=size))


def test_batches_pair_samples_with_their_labels(tmp_path):
    X, y = three_classes(25)
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
