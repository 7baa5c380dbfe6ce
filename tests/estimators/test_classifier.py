"""The classifier as a user meets it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.banks import as_views, per_view
from tests.reference.problems import random_problem

from kernelweave import Entry, KernelBank, MKLClassifier, Views
from kernelweave.bank import PrecomputedBank
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.kernels import Centering, Gaussian, Linear, Polynomial, Precomputed, UnitDiagonal, UnitTrace
from kernelweave.kernels.groups import KernelGroup
from kernelweave.learners import Hinge, NuHinge, SquaredHinge
from kernelweave.solvers import BlockDescent, Newton


def test_all_attributes_of_the_contract_are_learnt(cancer):
    X, y = cancer
    model = MKLClassifier(per_view()).fit(X, y)
    assert model.kernel_weights_.shape == (6,)
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
    assert len(set(model.kernel_names_)) == 6
    assert model.kernel_names_[0] == "mean·gaussian(scale=1)"
    assert model.dual_coef_.shape == (1, model.support_.size)
    assert model.intercept_.shape == (1,)
    assert model.certificate_.lower <= model.objective_ == model.certificate_.upper
    assert model.certificate_.gap == pytest.approx(model.certificate_.upper - model.certificate_.lower)
    assert model.duality_gap_ == model.certificate_.relative_gap <= 1e-4
    assert model.n_iter_ == len(model.history_) >= 1
    assert list(model.classes_) == [0, 1]
    assert model.n_features_in_ == 30
    assert model.feature_names_in_[0] == "mean radius"


def test_the_decision_is_the_weighted_sum_of_kernels(cancer):
    X, y = cancer
    train, test = X[:120], X[120:]
    model = MKLClassifier(per_view()).fit(train, y[:120])
    K = np.zeros((40, 120))
    for m, rows in model.bank_.cross(test):
        K += model.kernel_weights_[m] * rows
    expected = K[:, model.support_] @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(test), expected, atol=1e-10)
    np.testing.assert_allclose(model.combined_kernel(test), K, atol=1e-12)
    assert (model.predict(test) == model.classes_[(expected > 0).astype(int)]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scaling", [None, UnitTrace(), (Centering(), UnitTrace()), UnitDiagonal()])
def test_centred_storage_does_not_move_predictions(cancer, dtype, scaling):
    X, y = cancer
    X = X / 6.0  # squares of long rows would leave float32 no digits
    bank = KernelBank([Gaussian(), Polynomial(degree=2)], scaling=scaling)
    C = 100.0 if scaling and scaling != UnitDiagonal() else 1.0
    stored = MKLClassifier(bank, learner=Hinge(C=C), dtype=dtype, tol=1e-4).fit(X, y)
    Ks = list(bank.fit(X).grams())
    plain = MKLClassifier("precomputed", learner=Hinge(C=C), dtype="float64", tol=1e-6).fit(Ks, y)
    assert stored.certificate_.lower <= plain.certificate_.upper
    assert plain.certificate_.lower <= stored.certificate_.upper
    np.testing.assert_allclose(stored.decision_function(X), plain.decision_function(Ks), atol=0.15)


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, pl.DataFrame], ids=["numpy", "pandas", "polars"])
def test_tables_of_every_kind_give_the_same_model(cancer, wrap):
    X, y = cancer
    reference = MKLClassifier(per_view()).fit(X.to_numpy(), y)
    table = wrap(X) if wrap is not pl.DataFrame else pl.from_pandas(X)
    model = MKLClassifier(per_view()).fit(table, y)
    np.testing.assert_allclose(model.kernel_weights_, reference.kernel_weights_, atol=1e-12)
    np.testing.assert_allclose(
        model.decision_function(table), reference.decision_function(X.to_numpy()), atol=1e-10
    )


def test_columns_are_chosen_by_name(cancer):
    X, y = cancer
    size = ["mean radius", "mean area"]
    bank = KernelBank([Entry(Gaussian(), columns=size, name="size"), Entry(Linear(), columns="mean texture")])
    model = MKLClassifier(bank).fit(X, y)
    assert model.kernel_names_[0] == "size"
    shuffled = X[X.columns[::-1]]
    np.testing.assert_array_equal(model.decision_function(shuffled), model.decision_function(X))


def test_sparse_tables_work_where_the_kernel_allows_it(cancer):
    X, y = cancer
    dense = np.where(np.abs(X.to_numpy()) > 1.0, X.to_numpy(), 0.0)
    bank = KernelBank([Linear(), Gaussian()])
    a = MKLClassifier(bank, tol=1e-8).fit(dense, y)
    b = MKLClassifier(bank, tol=1e-8).fit(sparse.csr_matrix(dense), y)
    np.testing.assert_allclose(
        a.decision_function(dense), b.decision_function(sparse.csr_matrix(dense)), atol=1e-3
    )


def test_views_are_separate_arrays(cancer):
    X, y = cancer
    bank = KernelBank.per_view([Gaussian(), Linear()])
    model = MKLClassifier(bank).fit(as_views(X), y)
    reference = MKLClassifier(per_view()).fit(X, y)
    np.testing.assert_allclose(model.kernel_weights_, reference.kernel_weights_, atol=1e-12)
    assert model.kernel_names_ == reference.kernel_names_


def test_string_labels_come_back(cancer):
    X, y = cancer
    words = np.where(y == 1, "benign", "malignant")
    model = MKLClassifier(per_view()).fit(X, words)
    assert list(model.classes_) == ["benign", "malignant"]
    assert set(model.predict(X)) == {"benign", "malignant"}
    assert model.score(X, words) > 0.9
    numbers = MKLClassifier(per_view()).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), -numbers.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("multiclass", ["per_class", "shared"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_several_classes(multiclass, n_jobs):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = MKLClassifier(multiclass=multiclass, n_jobs=n_jobs).fit(X, names)
    assert model.decision_function(X).shape == (150, 3)
    assert model.kernel_weights_.shape == ((3, 2) if multiclass == "per_class" else (2,))
    assert model.dual_coef_.shape == (3, model.support_.size)
    assert model.score(X, names) > 0.95
    assert model.duality_gap_ <= 1e-4


def test_threads_do_not_change_the_result(cancer):
    X, y = cancer
    one, two = (MKLClassifier(per_view(), dtype="float32", n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.kernel_weights_, two.kernel_weights_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_class_weights_are_sample_weights(cancer):
    X, y = cancer
    weighted = MKLClassifier(per_view(), class_weight={0: 3.0, 1: 0.5}).fit(X, y)
    by_sample = MKLClassifier(per_view()).fit(X, y, sample_weight=np.where(y == 0, 3.0, 0.5))
    np.testing.assert_array_equal(weighted.dual_coef_, by_sample.dual_coef_)
    words = np.where(y == 1, "good", "bad")
    named = MKLClassifier(per_view(), class_weight={"bad": 3.0, "good": 0.5}).fit(X, words)
    np.testing.assert_array_equal(named.dual_coef_, weighted.dual_coef_)
    balanced = MKLClassifier(per_view(), class_weight="balanced").fit(X, y)
    assert not np.array_equal(balanced.dual_coef_, weighted.dual_coef_)


def test_probabilities_come_from_calibration(cancer):
    X, y = cancer
    model = MKLClassifier(per_view(), probability=True).fit(X, y)
    plain = MKLClassifier(per_view()).fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(P[order, 1]) >= -1e-12).all()
    with pytest.raises(AttributeError) as error:
        plain.predict_proba(X)
    assert "probability=True" in str(error.value.__cause__)


def test_probabilities_for_precomputed_lists_and_several_classes():
    Ks, _ = random_problem(0, n=60, M=4)
    y = np.arange(60) % 3
    P = MKLClassifier("precomputed", probability=True).fit(Ks, y).predict_proba(Ks)
    assert P.shape == (60, 3)


@pytest.mark.parametrize("kind", ["table", "views", "precomputed"])
def test_grid_search_in_a_pipeline_tunes_both_parts(cancer, kind):
    X, y = cancer
    X, y = X[:90], y[:90]
    if kind == "table":
        model = make_pipeline(
            StandardScaler(), MKLClassifier(KernelBank.distances(scales=[1.0]), geometry=BoxSimplex())
        )
        data = X
    elif kind == "views":
        model = Pipeline([("mklclassifier", MKLClassifier(KernelBank.per_view(), geometry=BoxSimplex()))])
        data = as_views(X)
    else:
        Ks = list(per_view().fit(X).grams())
        model = Pipeline([("mklclassifier", MKLClassifier("precomputed", geometry=BoxSimplex()))])
        data = np.stack(Ks, axis=2)
    grid = {"mklclassifier__geometry__theta": [0.4, 1.0], "mklclassifier__learner__C": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=KFold(3, shuffle=True, random_state=0), error_score="raise").fit(
        data, y
    )
    assert search.best_score_ > 0.85
    assert search.best_estimator_[-1].geometry.theta == search.best_params_["mklclassifier__geometry__theta"]
    assert len(search.cv_results_["params"]) == 4
    assert search.predict(data).shape == (90,)


def test_cross_validation_slices_precomputed_kernels_on_both_axes(cancer):
    X, y = cancer
    X, y = X[:90].to_numpy(), y[:90].to_numpy()
    Ks = [X @ X.T / 30, (1 + X @ X.T / 30) ** 2]
    cv = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(
        MKLClassifier("precomputed"), np.stack(Ks, axis=2), y, cv=cv, error_score="raise"
    )
    by_hand = []
    for train, test in cv.split(X):
        model = MKLClassifier("precomputed").fit([K[np.ix_(train, train)] for K in Ks], y[train])
        by_hand.append(model.score([K[np.ix_(test, train)] for K in Ks], y[test]))
    np.testing.assert_array_equal(scores, by_hand)


def test_a_part_left_at_its_default_can_be_tuned():
    model = MKLClassifier()
    assert model.learner is None
    model.set_params(learner__C=7.0)
    assert model.learner == Hinge(C=7.0)
    assert MKLClassifier().learner is None
    X, y = make_classification(60, random_state=0)
    GridSearchCV(
        MKLClassifier(KernelBank([Linear()])), {"learner__C": [0.1, 1.0]}, cv=2, error_score="raise"
    ).fit(X, y)


def test_fit_leaves_parameters_alone(cancer):
    X, y = cancer
    model = MKLClassifier(per_view(), learner=Hinge(C=2.0), geometry=LpBall(1.5), solver=Newton())
    before = clone(model).get_params()
    model.fit(X, y)
    after = model.get_params()
    assert {k: repr(v) for k, v in before.items()} == {k: repr(v) for k, v in after.items()}


def test_pickles_and_clones_predict_the_same(cancer):
    X, y = cancer
    model = MKLClassifier(per_view()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    copy = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, copy.dual_coef_)
    assert len(pickle.dumps(model)) < 2_000_000


def test_the_combined_kernel_feeds_kernel_pca(cancer):
    X, y = cancer
    model = MKLClassifier(per_view()).fit(X[:120], y[:120])
    pca = KernelPCA(2, kernel="precomputed").fit(model.combined_kernel(X[:120]))
    assert pca.transform(model.combined_kernel(X[120:])).shape == (40, 2)


@pytest.mark.parametrize(
    "scaling", [None, UnitTrace(), UnitDiagonal(), (UnitDiagonal(), Centering(), UnitTrace())]
)
def test_the_combined_kernel_between_new_samples_is_the_training_one_on_training_samples(cancer, scaling):
    X, y = cancer
    bank = KernelBank([Gaussian(), Polynomial(degree=2)], scaling=scaling)
    model = MKLClassifier(bank, geometry=LpBall(2.0), learner=SquaredHinge()).fit(X[:100], y[:100])
    K = model.combined_kernel(X[:100])
    np.testing.assert_allclose(model.combined_kernel(X[:20], X[30:60]), K[:20, 30:60], atol=1e-10)
    with pytest.raises(ValueError, match="training samples only"):
        MKLClassifier("precomputed").fit([K], y[:100]).combined_kernel([K], [K])


@pytest.mark.parametrize("multiclass", ["shared", "per_class"])
def test_long_predictions_are_cut_into_slices(cancer, monkeypatch, multiclass):
    X, _ = cancer
    y = np.digitize(X.iloc[:, 0], [-0.5, 0.5])
    model = MKLClassifier(per_view(), multiclass=multiclass).fit(X, y)
    values, kernel = model.decision_function(X), model.combined_kernel(X)
    monkeypatch.setattr("kernelweave.bank.cross.RESULTS_PER_SLICE", 7 * 3 * len(model.kernel_names_))
    monkeypatch.setattr("kernelweave.bank.protocol.ENTRIES_PER_SLICE", 7 * 160)
    monkeypatch.setattr(KernelGroup, "block_entries", 7 * 160)
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-12)
    np.testing.assert_allclose(model.combined_kernel(X), kernel, atol=1e-12)


def test_stopping_early_warns_with_the_gap_and_the_tolerance(cancer):
    X, y = cancer
    with pytest.warns(
        ConvergenceWarning, match=r"relative duality gap of .*, above tol=1.00e-06: max_iter=2"
    ):
        MKLClassifier(per_view(), tol=1e-6, max_iter=2).fit(X, y)


def test_a_converged_fit_is_silent(cancer):
    X, y = cancer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MKLClassifier(per_view(), verbose=0).fit(X, y)


def test_progress_shows_the_gap(cancer, capsys):
    X, y = cancer
    MKLClassifier(per_view(), verbose=2).fit(X, y)
    assert "gap" in capsys.readouterr().out


def test_the_solver_may_be_chosen(cancer):
    X, y = cancer
    newton = MKLClassifier(per_view(), geometry=LpBall(2.0)).fit(X, y)
    block = MKLClassifier(per_view(), geometry=LpBall(2.0), solver=BlockDescent()).fit(X, y)
    assert block.objective_ == pytest.approx(newton.objective_, rel=2e-4)


def test_a_duplicate_and_a_zero_kernel_and_a_constant_column_are_legal(cancer):
    X, y = cancer
    X = X.copy()
    X["constant"] = 1.0
    bank = KernelBank(
        [
            Entry(Gaussian(), columns=["mean radius"]),
            Entry(Gaussian(), columns=["mean radius"]),
            Entry(Linear(), columns="constant"),
        ]
    )
    with pytest.warns(UserWarning, match="Column 'constant' has one value in all rows"):
        model = MKLClassifier(bank).fit(X, y)
    assert model.duality_gap_ <= 1e-4
    assert model.kernel_weights_[2] == pytest.approx(0.0, abs=1e-12)


def test_precomputed_views_are_kernels_with_names(cancer):
    X, y = cancer
    K = X.to_numpy() @ X.to_numpy().T
    model = MKLClassifier(KernelBank.per_view([Precomputed()])).fit(Views({"linear": K, "square": K**2}), y)
    assert model.kernel_names_ == ("linear·precomputed", "square·precomputed")


def test_every_learner_classifies(cancer):
    X, y = cancer
    for learner in (Hinge(C=1.0), NuHinge(nu=0.2), SquaredHinge(C=1.0)):
        assert MKLClassifier(per_view(), learner=learner, geometry=Simplex()).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_of_several_classes_shares_one_display(capsys, n_jobs):
    X, y = load_iris(return_X_y=True)
    MKLClassifier(multiclass="per_class", verbose=2, n_jobs=n_jobs).fit(X, y)
    out = capsys.readouterr().out
    for c in (0, 1, 2):
        assert f"class {c}" in out


def test_a_fitted_model_does_not_keep_the_kernel_matrices():
    Ks, y = random_problem(0, n=100, M=8)
    model = MKLClassifier("precomputed").fit(Ks, y)
    assert len(pickle.dumps(model)) < Ks[0].nbytes / 2
    np.testing.assert_array_equal(model.predict(Ks), pickle.loads(pickle.dumps(model)).predict(Ks))


def test_scaled_precomputed_kernels_predict_without_their_matrices():
    Ks, y = random_problem(0, n=60, M=3)
    bank = PrecomputedBank(scaling=(Centering(), UnitTrace()))
    model = MKLClassifier(bank, learner=Hinge(C=100.0)).fit(Ks, y)
    assert len(pickle.dumps(model)) < Ks[0].nbytes
    values = model.decision_function([K[:7] for K in Ks])
    np.testing.assert_allclose(values, model.decision_function(Ks)[:7], atol=1e-10)
