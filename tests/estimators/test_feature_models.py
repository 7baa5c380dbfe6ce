"""Models on explicit features as estimators: tables of all kinds, batches, streams, prediction, files."""

import pickle
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave import (
    KernelBank,
    Landmarks,
    MKLClassifier,
    MKLRegressor,
    OneClassMKL,
    RandomFourier,
    Views,
    batches,
)
from kernelweave.errors import IncompatiblePartsError
from kernelweave.geometry import LpBall
from kernelweave.gram.policy import _what_would_work
from kernelweave.io import load, save
from kernelweave.kernels import Centering, Gaussian, Linear, Precomputed
from kernelweave.learners import EpsilonInsensitive, Hinge, Square

BANK = KernelBank([Gaussian(width=1.0), Gaussian(width=3.0), Linear()])
N = 120


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, 3))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.3 * rng.normal(size=N)
    return X, score, np.where(score > 0.0, "yes", "no")


def classifier(**params):
    return MKLClassifier(**({"bank": BANK, "features": Landmarks(20), "random_state": 0} | params))


def assert_same(one, other, X):
    np.testing.assert_array_equal(one.kernel_weights_, other.kernel_weights_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.certificate_ == other.certificate_


def test_what_is_predicted_is_what_the_features_say(data):
    X, score, y = data
    model = classifier(probability=True).fit(X, y)
    Phi, eta = model.features_.transform(X), model.kernel_weights_
    sizes = np.repeat(eta, np.diff(model.features_.offsets))
    np.testing.assert_allclose(model.combined_kernel(X, X[:5]), (Phi * sizes) @ Phi[:5].T, atol=1e-9)
    values = model.decision_function(X)
    np.testing.assert_allclose(model._kernel_parts(X).sum(axis=2)[:, 0] + model.intercept_, values, atol=1e-9)
    assert (model.predict(X) == np.where(values > 0.0, "yes", "no")).all()
    assert model.predict_proba(X).shape == (N, 2)
    assert model.score(X, y) > 0.85
    lack = np.maximum(0.0, 1.0 - np.where(score > 0.0, 1.0, -1.0) * values).sum()
    assert lack <= model.certificate_.upper
    with pytest.raises(ValueError, match="keeps its landmarks and not the training samples"):
        model.combined_kernel(X)


@pytest.mark.parametrize("learner", [Square(C=1.0), EpsilonInsensitive(C=1.0, epsilon=0.1)], ids=repr)
def test_the_certified_loss_is_that_of_the_predictions_in_any_number_of_blocks(data, learner, monkeypatch):
    monkeypatch.setattr("kernelweave.estimators.sample_blocks.ROWS", 16)
    X, score, _ = data
    order = np.argsort(score)  # the targets of blocks have means of their own
    X, score = X[order], score[order] + 5.0
    model = MKLRegressor(BANK, learner=learner, features=Landmarks(20), tol=1e-6, random_state=0).fit(
        X, score
    )
    off = np.abs(score - model.predict(X))
    loss = 0.5 * (off**2).sum() if isinstance(learner, Square) else np.maximum(0.0, off - 0.1).sum()
    norm = 0.0
    for m, coef in enumerate(model.feature_coef_):
        if coef is not None:
            w = np.linalg.pinv(model.features_.transforms[m]) @ coef
            norm += 0.5 * float(np.sum(w**2)) / model.kernel_weights_[m]
    assert loss + norm == pytest.approx(model.certificate_.upper, rel=1e-6)


def test_the_model_says_that_its_kernels_are_approximate_and_by_how_much(data):
    X, _, y = data
    few, many = (classifier(features=Landmarks(count)).fit(X, y) for count in (3, 60))
    assert re.search(r"approximate.*certificate.*differs by \d", few.storage_.how)
    assert 0.0 < many.storage_.error < few.storage_.error < 1.0
    centred = classifier(
        bank=KernelBank([Gaussian(width=1.0)], scaling=Centering()), features=Landmarks(N)
    ).fit(X, y)
    assert centred.storage_.error < 1e-6


def test_frames_and_sparse_tables_and_views_give_the_same_model(data):
    X, _, y = data
    polars = pytest.importorskip("polars", reason="needs polars")
    expected = classifier().fit(X, y)
    for table in (pd.DataFrame(X, columns=list("abc")), polars.DataFrame(X, schema=list("abc"))):
        np.testing.assert_allclose(
            classifier().fit(table, y).decision_function(table), expected.decision_function(X), atol=1e-6
        )
    model = classifier().fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        model.decision_function(sparse.csr_matrix(X)), expected.decision_function(X), atol=1e-2
    )
    bank = KernelBank.per_view([Gaussian(width=1.0), Linear()])
    views = Views({"a": X[:, :1], "b": X[:, 1:]})
    by_view = classifier(bank=bank).fit(views, y)
    assert len(by_view.kernel_names_) == 4
    assert by_view.score(views, y) > 0.8


def test_samples_may_lack_views(data):
    X, _, y = data
    X = X.copy()
    X[::5, 2] = np.nan
    bank = KernelBank.per_view([Gaussian(width=1.0)], views={"a": [0, 1], "b": [2]})
    model = classifier(bank=bank).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.decision_function(X[:5]).shape == (5,)
    kept = model.features_._fitted
    assert kept.n_samples == 20
    assert all(group.fitted.n_samples == group.places.size <= 20 for group in kept.groups)
    Phi, K = model.features_.transform(X), dict(kept.cross(X, columns=np.arange(20)))
    for m, (a, b) in enumerate(pairwise(model.features_.offsets)):
        there = ~np.isnan(X[:, 2]) | (m == 0)
        assert not Phi[~there, a:b].any()  # at the mean of those that have the view
        L = K[m][there]
        G = np.vstack([next(kept.groups[m].fitted.grams())])
        inside = kept.groups[m].places
        np.testing.assert_allclose(
            Phi[there, a:b] @ Phi[there, a:b].T,
            L[:, inside] @ np.linalg.pinv(G, 1e-8) @ L[:, inside].T,
            atol=1e-6,
        )
    X[:, 2] = np.where(np.arange(N) < 3, 1.0, np.nan)
    with pytest.raises(
        ValueError, match=r"View 'b' is missing in all but . of the 5 samples drawn as landmarks"
    ):
        classifier(bank=bank, features=Landmarks(5), random_state=1).fit(X, y)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_do_not_change_a_digit(data, n_jobs, monkeypatch):
    monkeypatch.setattr("kernelweave.estimators.sample_blocks.ROWS", 16)
    X, _, y = data
    assert_same(classifier(n_jobs=n_jobs).fit(X, y), classifier().fit(X, y), X)


def test_models_are_cloned_pickled_and_saved(data, tmp_path):
    X, score, y = data
    models = [
        (classifier().fit(X, y), y),
        (MKLRegressor(BANK, features=RandomFourier(20), random_state=0).fit(X, score), score),
        (classifier(probability=True).fit(X, np.digitize(score, [-0.5, 0.5])), None),
    ]
    for model, target in models:
        if target is not None:
            assert_same(clone(model).fit(X, target), model, X)
        assert_same(pickle.loads(pickle.dumps(model)), model, X)
        save(model, tmp_path / "model.kw")
        loaded = load(tmp_path / "model.kw")
        assert_same(loaded, model, X)
        assert loaded.storage_ == model.storage_


def test_progress_is_shown_when_asked_for(data, capsys):
    X, _, y = data
    classifier(verbose=2).fit(X, y)
    assert "pass" in capsys.readouterr().out


def test_fewer_samples_than_landmarks_and_kernels_of_nothing_are_no_trouble(data):
    X, score, y = data
    assert classifier(features=Landmarks(1000)).fit(X[:12], y[:12]).features_.sizes[0] == 12
    ball = MKLRegressor(KernelBank([Linear()]), geometry=LpBall(2.0), features=Landmarks(5)).fit(
        0.0 * X, score
    )
    np.testing.assert_allclose(ball.predict(0.0 * X), score.mean(), atol=1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("value", [0.0, 1.0, 100.0])
def test_a_classifier_on_constant_columns_is_certified(value, C):
    y = np.where(np.arange(N) < 48, 1, -1)  # nothing but the intercept can tell them apart
    model = MKLClassifier(
        KernelBank([Linear(), Linear()]), learner=Hinge(C=C), features=Landmarks(5), tol=1e-6
    )
    model.fit(np.full((N, 3), value), y)
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(2.0 * C * 48)


def test_centred_kernels_need_an_intercept(data):
    X, score, _ = data
    bank = KernelBank([Linear()], scaling=Centering())
    learner = Square(fit_intercept=False)
    with pytest.raises(
        IncompatiblePartsError, match=r"leave out the centring .*give it one, or leave Centering"
    ):
        MKLRegressor(bank, learner=learner, features=Landmarks(5)).fit(X, score)
    assert MKLRegressor(bank, features=Landmarks(5)).fit(X, score).duality_gap_ <= 1e-4


# ------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("how", ["arrays", "frame", "csv", "parquet", "callable", "memory map"])
def test_batches_give_the_model_of_one_table(data, how, tmp_path):
    X, _, y = data
    frame = pd.DataFrame(X, columns=list("abc"))
    if how == "csv":
        frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False, float_format="%.17g")
    if how == "parquet":
        frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    np.save(tmp_path / "X.npy", X)
    given = {
        "arrays": lambda: batches(X, y, size=50),
        "frame": lambda: batches(frame, y, size=50),
        "csv": lambda: batches(tmp_path / "t.csv", "y", size=50),
        "parquet": lambda: batches(tmp_path / "t.parquet", "y", size=50),
        "callable": lambda: batches(lambda: ((X[i : i + 50], y[i : i + 50]) for i in range(0, N, 50))),
        "memory map": lambda: batches(tmp_path / "X.npy", y, size=50),
    }[how]()
    how = {"class_weight": "balanced", "tol": 1e-6}
    expected, model = classifier(**how).fit(X, y), classifier(**how).fit(given)
    np.testing.assert_allclose(model.kernel_weights_, expected.kernel_weights_, atol=1e-5)
    table = frame if hasattr(model, "feature_names_in_") else X
    np.testing.assert_allclose(model.decision_function(table), expected.decision_function(X), atol=1e-4)
    assert list(model.classes_) == ["no", "yes"]


def test_batches_of_regression_give_the_model_of_one_table(data):
    X, score, _ = data
    Y = np.column_stack([score, X[:, 0]])
    how = {"features": Landmarks(20), "random_state": 0, "multioutput": "per_output", "tol": 1e-6}
    expected = MKLRegressor(BANK, **how).fit(X, Y)
    model = MKLRegressor(BANK, **how).fit(batches(X, Y, size=33))
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-4)


def with_second(first, *later):
    """Return batches whose later passes differ from the first."""
    passes = iter([first, *later])
    return batches(lambda: iter(next(passes)))


SPOILT = {
    "rows": (lambda X, y: (X[1:], y[1:]), "120 samples when they were first read and 119 now"),
    "NaN": (
        lambda X, y: (np.where(np.arange(len(X))[:, None] == 3, np.nan, X), y),
        "In batch 1: .*(NaN|no view)",
    ),
    "columns": (lambda X, y: (X[:, :2], y), "In batch 1: X has 2 features"),
    "labels": (lambda X, y: (X, np.where(y == "no", "odd", y)), r"In batch 1: .*labels \['odd'\]"),
    "length": (lambda X, y: (X, y[1:]), "In batch 1: X has 60 samples but y has 59"),
    "no targets": (lambda X, _: (X, None), "In batch 1: .*"),
}


@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.parametrize("what", SPOILT)
def test_a_batch_that_changes_between_passes_is_named(data, what, kind):
    spoil, message = SPOILT[what]
    X, _, y = data
    parts = [(X[:60], y[:60]), (X[60:], y[60:])]
    changed = [parts[0], spoil(*parts[1])]
    if kind == "frame":
        parts, changed = (
            [(pd.DataFrame(a, columns=list("abc")[: a.shape[1]]), b) for a, b in one]
            for one in (parts, changed)
        )
        message = message.replace("X has 2 features", ".*")
    with pytest.raises(ValueError, match=message):
        classifier().fit(with_second(parts, changed))


@pytest.mark.parametrize("what", ["NaN", "columns", "length", "no targets"])
def test_a_batch_with_an_error_in_it_is_named(data, what):
    spoil, message = SPOILT[what]
    X, _, y = data
    with pytest.raises(ValueError, match=message):
        classifier().fit(batches(lambda: iter([(X[:60], y[:60]), spoil(X[60:], y[60:])])))


def test_batches_say_what_they_need(data):
    X, score, y = data
    with pytest.raises(ValueError, match=r"set features=Landmarks\(300\), or pass one table"):
        MKLClassifier(BANK).fit(batches(X, y))
    with pytest.raises(ValueError, match="no weights of their own; use class_weight"):
        classifier().fit(batches(X, y), sample_weight=np.ones(N))
    with pytest.raises(ValueError, match="The batches hold no samples"):
        classifier().fit(batches(lambda: iter([])))
    with pytest.raises(ValueError, match="at least 2 classes"):
        classifier().fit(batches(X, np.ones(N)))
    with pytest.raises(ValueError, match="In batch 0: The batches have no targets"):
        classifier().fit(batches(X))
    with pytest.raises(TypeError, match=r"features must be a Features such as Landmarks\(300\)"):
        classifier(features=300).fit(X, y)
    with pytest.raises(ValueError, match="bank='precomputed'"):
        classifier(bank="precomputed").fit([X @ X.T], y)
    with pytest.raises(ValueError, match="probability"):
        classifier(probability=True).fit(batches(X, y))
    with pytest.raises(ValueError, match="once"):
        classifier().fit(batches(X, y), y)
    parts = iter([(X, y)])
    with pytest.raises(ValueError, match="first read and 0 now"):
        classifier().fit(batches(lambda: parts))
    assert MKLRegressor(BANK, features=Landmarks(5)).fit(batches(X, score)).predict(X).shape == (N,)


@pytest.mark.parametrize("size", [N, 70], ids=["one batch", "two"])
def test_batches_of_views_give_the_model_of_the_views(data, size):
    X, _, y = data
    frame = pd.DataFrame(X[:, 1:], columns=["b", "c"], index=[f"p{k}" for k in range(N)])
    views = Views({"u": X[:, :2], "v": frame, "w": sparse.csr_matrix(X)})
    bank = KernelBank([("u", Gaussian(width=1.0)), ("v", Gaussian(width=1.0)), ("w", Linear())])
    model = classifier(bank=bank)
    read, whole = clone(model).fit(batches(views, y, size=size)), clone(model).fit(views, y)
    # Blocks of another size are added up in another order.
    np.testing.assert_allclose(read.kernel_weights_, whole.kernel_weights_, atol=1e-6)
    np.testing.assert_allclose(read.decision_function(views), whole.decision_function(views), atol=1e-5)


def test_views_of_kernels_that_are_given_have_landmarks(data):
    X, _, y = data
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2.0)
    model = classifier(bank=KernelBank([("k", Precomputed())]), features=Landmarks(30)).fit(
        Views({"k": K}), y
    )
    plain = classifier(bank=KernelBank([Gaussian(gamma=0.5)]), features=Landmarks(30)).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(Views({"k": K})), plain.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize("how", ["table", "batches", "own batches", "stream", "probability"])
def test_targets_labelled_in_another_order_are_refused(data, how):
    X, _, y = data
    X = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"p{k}" for k in range(N)])
    y = pd.Series(y, index=X.index)
    fit = {
        "table": lambda y: classifier().fit(X, y),
        "batches": lambda y: classifier().fit(batches(X, y, size=50)),
        "own batches": lambda y: classifier().fit(batches(lambda: iter([(X, y)]))),
        "stream": lambda y: classifier().partial_fit(X, y, classes=["no", "yes"]),
        "probability": lambda y: classifier(probability=True).fit(X, y),
    }[how]
    fit(y)
    with pytest.raises(ValueError, match="labelled in another order than those of X"):
        fit(y.sort_values())


# ------------------------------------------------------------------------------------------- streams


def test_a_stream_with_the_square_loss_ends_where_a_fit_does(data):
    X, score, _ = data
    features = Landmarks(40)
    stream = MKLRegressor(BANK, features=features, random_state=0, geometry=LpBall(2.0))
    for start in range(0, N, 40):
        stream.partial_fit(X[start : start + 40], score[start : start + 40])
    assert stream.n_samples_seen_ == N
    # The objective on the features of the stream: its fit is the minimum of that over w, b and eta.
    Phi, ends = stream.features_.transform(X), stream.features_.offsets
    eta = stream.kernel_weights_
    K = sum(e * Phi[:, a:b] @ Phi[:, a:b].T for e, a, b in zip(eta, ends[:-1], ends[1:], strict=True))
    A = np.block([[K + np.eye(N), np.ones((N, 1))], [np.ones((1, N)), np.zeros((1, 1))]])
    v = np.linalg.solve(A, np.r_[score, 0.0])
    np.testing.assert_allclose(stream.predict(X), K @ v[:-1] + v[-1], atol=1e-4)
    norms = [np.linalg.norm(Phi[:, a:b].T @ v[:-1]) for a, b in pairwise(ends)]
    best = np.array(norms) ** 2 / np.linalg.norm(np.array(norms) ** 2)  # the lp ball's maximiser, p = 2
    np.testing.assert_allclose(eta, best, atol=1e-2)


@pytest.mark.parametrize("learner", [Hinge(C=1.0), Hinge(C=100.0)], ids=repr)
def test_a_stream_of_classes_learns_all_of_them(data, learner):
    X, score, _ = data
    y = np.array(["a", "b", "c"])[np.digitize(score, [-0.5, 0.5])]
    stream = classifier(learner=learner)
    for start in range(0, N, 30):
        stream.partial_fit(X[start : start + 30], y[start : start + 30], classes=["a", "b", "c"])
    assert stream.score(X, y) > 0.7
    assert stream.decision_function(X).shape == (N, 3)
    assert not hasattr(stream, "certificate_")


def test_an_error_in_a_batch_of_a_stream_leaves_the_model_as_it_was(data):
    X, _, y = data
    with pytest.raises(ValueError, match="needs classes="):
        classifier().partial_fit(X, y)
    assert not hasattr(MKLClassifier(BANK), "partial_fit")
    stream = classifier().partial_fit(X[:60], y[:60], classes=["no", "yes"])
    before, values = dict(vars(stream)), stream.decision_function(X)
    for spoil in ("NaN", "columns", "labels", "length"):
        with pytest.raises(ValueError, match=r"\w"):
            stream.partial_fit(*SPOILT[spoil][0](X[60:], y[60:]))
    with pytest.raises(ValueError, match="differ from those of the first call"):
        stream.partial_fit(X[60:], y[60:], classes=["no", "maybe"])
    assert vars(stream) == before
    np.testing.assert_array_equal(stream.decision_function(X), values)
    stream.partial_fit(X[60:], y[60:])
    assert stream.n_samples_seen_ == N


# ------------------------------------------------------------------------------------- beyond the exact way


def test_an_exact_fit_that_does_not_fit_says_what_would_and_how_long_it_takes(rng):
    X, y = rng.normal(size=(2_100, 3)), rng.integers(0, 2, 2_100)
    with pytest.raises(MemoryError, match=r"memory_limit to .*less than a minute.*features=Landmarks\(300\)"):
        MKLClassifier(BANK, memory_limit=1e6).fit(X, y)
    with pytest.raises(MemoryError, match="use fewer samples") as caught:
        OneClassMKL(BANK, memory_limit=1e6).fit(X)
    assert "Landmarks" not in str(caught.value)


@pytest.mark.parametrize(("n", "time"), [(10**5, "about 1 minutes"), (10**6, "about 2 hours")])
def test_time_grows_with_the_square_of_the_samples(n, time):
    assert time.split()[-1] in _what_would_work(n, 10**9, offers_features=True)
