"""What users of scikit-learn do with an estimator, done with these."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import average_precision_score, log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from kernelweave import (
    FisherMKLClassifier,
    KernelBank,
    Landmarks,
    LocalizedMKLClassifier,
    LPBetaClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MultiInstanceMKLClassifier,
    OneClassMKL,
    PWMKClassifier,
    Views,
    path,
)
from kernelweave.errors import NotOfferedError
from kernelweave.estimators.validation import mean_held_out
from kernelweave.explain import contributions, leave_view_out
from kernelweave.geometry import BoxSimplex, LpBall
from kernelweave.io import load, save
from kernelweave.kernels import Centering, Gaussian, Linear, Precomputed, UnitDiagonal, UnitTrace
from kernelweave.learners import Hinge, SquaredHinge, UnbiasedSquaredHinge
from kernelweave.report import write_report

# Widths that are not learnt: fits to some of the samples then have the same kernels.
FIXED = [Gaussian(width=1.0), Gaussian(width=3.0)]
HALVES = {"sepal": [0, 1], "petal": [2, 3]}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)[:90]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[rows], np.array(["setosa", "versicolor", "virginica"])[y[rows]]


@pytest.fixture(scope="module")
def views(iris):
    X = iris[0]
    return Views({"sepal": X[:, :2], "petal": X[:, 2:]})


@pytest.fixture(scope="module")
def planted():
    """A table of eight columns of which three count, two classes and a target of numbers."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 8))
    z = 2.0 * X[:, 1] - 1.5 * X[:, 4] + 1.5 * X[:, 6]
    return X, np.where(z + 0.3 * rng.standard_normal(120) > 0, "up", "down"), z


@pytest.fixture(scope="module")
def labels():
    X, Y = make_multilabel_classification(n_samples=100, n_features=6, n_classes=3, random_state=1)
    return X / X.std(axis=0), Y


def by_hand(model, X, Z):
    """The learnt kernel of fixed Gaussian widths on the halves of iris, by scikit-learn's own function."""
    eta = np.atleast_2d(model.kernel_weights_).mean(axis=0)
    widths = [1.0, 3.0] * 2
    columns = [[0, 1], [0, 1], [2, 3], [2, 3]]
    gammas = [1.0 / (2.0 * w**2) for w in widths]
    return sum(e * rbf_kernel(X[:, c], Z[:, c], g) for e, c, g in zip(eta, columns, gammas, strict=True))


# -- the learnt kernel


def test_a_pipeline_hands_the_learnt_kernel_to_a_kernel_machine(iris):
    X, y = iris
    bank = KernelBank.per_view(FIXED, views=HALVES)
    piped = make_pipeline(
        MKLClassifier(bank, geometry=LpBall(2.0)), SVC(kernel="precomputed", C=3.0, tol=1e-9)
    )
    piped.fit(X[:60], y[:60])
    K, new = (by_hand(piped[0], part, X[:60]) for part in (X[:60], X[60:]))
    alone = SVC(kernel="precomputed", C=3.0, tol=1e-9).fit(K, y[:60])
    np.testing.assert_allclose(piped.decision_function(X[60:]), alone.decision_function(new), atol=1e-6)
    np.testing.assert_allclose(piped[0].transform(X[60:]), new, atol=1e-12)


def test_a_pipeline_onto_a_kernel_machine_is_cross_validated_fold_by_fold(iris, views):
    X, y = iris
    piped = make_pipeline(MKLClassifier(), SVC(kernel="precomputed"))
    scores = cross_val_score(piped, views, y, cv=3)
    for score, (train, test) in zip(scores, StratifiedKFold(3).split(X, y), strict=True):
        model = MKLClassifier().fit(views[train], y[train])
        svc = SVC(kernel="precomputed").fit(model.combined_kernel(views[train]), y[train])
        assert score == svc.score(model.combined_kernel(views[test]), y[test])
    assert scores.mean() > 0.85


def test_given_kernels_are_piped_too(iris):
    X, y = iris
    K = np.stack([X[:, c] @ X[:, c].T for c in HALVES.values()], axis=2)
    piped = make_pipeline(MKLClassifier("precomputed", tol=1e-8), SVC(kernel="precomputed"))
    found = cross_val_predict(piped, K, y, cv=3, method="decision_function")
    bank = KernelBank.per_view(Linear(), views=HALVES, scaling=None)
    table = make_pipeline(MKLClassifier(bank, tol=1e-8), SVC(kernel="precomputed"))
    same = cross_val_predict(table, X, y, cv=3, method="decision_function")
    np.testing.assert_allclose(found, same, atol=1e-3)
    assert (np.unique(y)[found.argmax(axis=1)] == y).mean() > 0.9


@pytest.mark.parametrize("kind", ["table", "views"])
def test_a_fitted_model_is_a_kernel_for_svc(iris, views, kind):
    X, y = iris
    data = X if kind == "table" else views
    model = MKLClassifier(KernelBank.per_view(FIXED, views=HALVES if kind == "table" else None)).fit(data, y)
    svc = SVC(kernel=model, C=2.0, tol=1e-9).fit(data[:60], y[:60])
    K, new = by_hand(model, X[:60], X[:60]), by_hand(model, X[60:], X[:60])
    alone = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(K, y[:60])
    np.testing.assert_allclose(svc.decision_function(data[60:]), alone.decision_function(new), atol=1e-6)
    np.testing.assert_allclose(model(data[:5]), by_hand(model, X[:5], X[:5]), atol=1e-12)


def test_a_clone_is_not_a_kernel_and_its_method_is(iris):
    X, y = iris
    model = MKLClassifier().fit(X, y)
    with pytest.raises(NotFittedError, match=r"kernel=model\.combined_kernel, or a pipeline"):
        clone(SVC(kernel=model)).fit(X, y)
    scores = cross_val_score(SVC(kernel=model.combined_kernel), X, y, cv=3)
    K = model.combined_kernel(X)
    np.testing.assert_array_equal(scores, cross_val_score(SVC(kernel="precomputed"), K, y, cv=3))


@pytest.mark.parametrize(
    "model",
    [MKLRegressor(), OneClassMKL(), PWMKClassifier(cv=3), MKLClassifier(multiclass="shared")],
    ids=repr,
)
def test_every_model_of_this_kind_transforms_and_is_a_kernel(iris, model):
    X = iris[0]
    model.fit(X, np.repeat([0, 1, 2], 30))
    K = model.transform(X[:7])
    assert K.shape == (7, 90)
    np.testing.assert_allclose(model(X[:7], X), K, atol=1e-12)
    np.testing.assert_allclose(model(X[:7]), K[:, :7], atol=1e-12)


def test_samples_that_lack_a_view_are_piped_too(iris):
    X, y = iris
    gaps = X.copy()
    gaps[:20, :2] = np.nan
    data = Views({"sepal": gaps[:, :2], "petal": gaps[:, 2:]})
    model = MKLClassifier().fit(data, y)
    piped = make_pipeline(MKLClassifier(), SVC(kernel="precomputed")).fit(data, y)
    called = SVC(kernel=model).fit(data, y)
    np.testing.assert_allclose(piped.decision_function(data), called.decision_function(data), atol=1e-2)
    assert called.score(data, y) > 0.9


def test_columns_of_the_learnt_kernel_have_names_and_rows_their_labels(iris):
    X, y = iris
    table = pd.DataFrame(X, columns=list("abcd"), index=np.arange(90) * 2)
    model = (
        MKLClassifier(KernelBank.distances(), multiclass="per_class")
        .set_output(transform="pandas")
        .fit(table, y)
    )
    frame = model.transform(table[:4])
    assert (
        list(frame.columns) == [f"mklclassifier{i}" for i in range(90)] == list(model.get_feature_names_out())
    )
    assert list(frame.index) == [0, 2, 4, 6]
    np.testing.assert_array_equal(frame.to_numpy(), model.combined_kernel(table[:4]))
    np.testing.assert_allclose(np.diagonal(frame), model.kernel_weights_.sum(axis=1).mean(), rtol=1e-12)
    axes = FisherMKLClassifier().set_output(transform="pandas").fit(table, y).transform(table)
    assert axes.shape == (90, 3)


def test_a_model_on_features_has_no_columns_for_the_training_samples(iris):
    X, y = iris
    with pytest.raises(ValueError, match="does not keep the training samples"):
        MKLClassifier(features=Landmarks(5)).fit(X, y).get_feature_names_out()
    with pytest.raises(NotFittedError):
        MKLClassifier(features=Landmarks(5)).get_feature_names_out()


# -- searches, folds, routing


def test_a_grid_search_over_a_pipeline_scores_as_by_hand(iris, views):
    _, y = iris
    bank = KernelBank.per_view(FIXED)
    piped = make_pipeline(MKLClassifier(bank, tol=1e-6), SVC(kernel="precomputed"))
    grid = {"mklclassifier__learner__C": [0.01, 10.0], "svc__C": [0.01, 10.0]}
    search = GridSearchCV(piped, grid, cv=3).fit(views, y)
    folds = list(StratifiedKFold(3).split(np.zeros(90), y))
    for params, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in folds:
            learner = Hinge(C=params["mklclassifier__learner__C"])
            model = MKLClassifier(bank, learner=learner, tol=1e-6).fit(views[train], y[train])
            svc = SVC(kernel=model, C=params["svc__C"]).fit(views[train], y[train])
            scores.append(svc.score(views[test], y[test]))
        assert mean == pytest.approx(np.mean(scores))
    assert search.best_params_["svc__C"] == 10.0
    assert search.best_score_ > 0.85


def test_held_out_predictions_are_those_of_models_that_never_saw_the_sample(iris, views):
    _, y = iris
    held_out = cross_val_predict(MKLClassifier(), views, y, cv=3, method="decision_function")
    assert held_out.shape == (90, 3)
    for train, test in StratifiedKFold(3).split(np.zeros(90), y):
        model = MKLClassifier().fit(views[train], y[train])
        np.testing.assert_allclose(held_out[test], model.decision_function(views[test]), atol=1e-12)


def test_leaving_one_out_of_given_kernels_takes_rows_and_columns(iris):
    X, y = iris
    few = np.arange(0, 90, 4)
    K = np.stack([rbf_kernel(X[few][:, c]) for c in HALVES.values()], axis=2)
    y = (y[few] == "setosa").astype(int)
    found = cross_val_predict(
        MKLClassifier("precomputed"), K, y, cv=LeaveOneOut(), method="decision_function"
    )
    for i in (0, 5, 22):
        rest = np.delete(np.arange(few.size), i)
        model = MKLClassifier("precomputed").fit(K[np.ix_(rest, rest)], y[rest])
        assert found[i] == pytest.approx(model.decision_function(K[[i]][:, rest])[0], abs=1e-9)
    assert ((found > 0) == y).mean() > 0.9


def test_groups_are_kept_together_in_searches(iris):
    X, y = iris
    groups = np.arange(90) % 9
    search = MKLClassifierCV(
        cv=GroupKFold(3), learner_values=[0.1, 1.0], geometry_values=[0.5, 1.0], refit=False
    )
    search.fit(X, y, groups=groups)
    pairs = list(GroupKFold(3).split(X, y, groups))
    given = clone(search).set_params(cv=pairs).fit(X, y)
    np.testing.assert_array_equal(search.mean_score_, given.mean_score_)
    one = search.cv_results_["score"][0]
    first = MKLClassifier(geometry=clone(search.part("geometry")).set_params(theta=0.5), learner=Hinge(C=0.1))
    train, test = pairs[0]
    assert one == first.fit(X[train], y[train]).score(X[test], y[test])


def test_repeated_folds_are_all_searched(iris):
    X, y = iris
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    search = MKLClassifierCV(cv=cv, learner_values=[1.0], geometry_values=[1.0]).fit(X, y)
    assert search.n_splits_ == 6
    alone = MKLClassifier(KernelBank.prepared(), learner=Hinge(C=1.0), geometry=BoxSimplex(theta=1.0))
    scores = cross_val_score(alone, X, y, cv=cv)
    np.testing.assert_allclose(search.cv_results_["score"], scores)


@pytest.mark.parametrize("kind", [LPBetaClassifier, PWMKClassifier])
def test_methods_that_hold_samples_out_take_groups_and_repeats(iris, kind):
    X, y = iris
    groups = np.arange(90) % 9
    grouped = kind(cv=GroupKFold(3)).fit(X, y, groups=groups)
    given = kind(cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(grouped.kernel_weights_, given.kernel_weights_)
    once = StratifiedKFold(3)
    twice = list(once.split(X, y)) * 2
    np.testing.assert_allclose(
        kind(cv=twice).fit(X, y).kernel_weights_, kind(cv=once).fit(X, y).kernel_weights_, atol=1e-12
    )
    with pytest.raises(ValueError, match="equally often"):
        kind(cv=[*once.split(X, y), next(once.split(X, y))]).fit(X, y)


def test_repeated_folds_give_the_mean_of_what_they_say():
    folds = [
        (np.array([2, 3]), np.array([0, 1])),
        (np.array([0, 1]), np.array([2, 3])),
        (np.array([0, 2]), np.array([3, 1])),
    ]
    found = mean_held_out([*folds, (np.array([1, 3]), np.array([0, 2]))], np.arange(8.0).reshape(4, 2))
    np.testing.assert_array_equal(found, [3.0, 3.0, 4.5, 3.5])


def test_bags_of_a_group_are_held_out_together(iris):
    X, y = iris
    y, groups = (y == "setosa").astype(int), np.arange(90) % 9
    bags = MultiInstanceMKLClassifier(KernelBank(FIXED), cv=GroupKFold(3), max_rounds=2).fit(
        X, y, groups=groups
    )
    pairs = list(GroupKFold(3).split(X, y, groups))
    given = MultiInstanceMKLClassifier(KernelBank(FIXED), cv=pairs, max_rounds=2).fit(X, y)
    assert bags.threshold_ == given.threshold_
    assert bags.score(X, y) > 0.9


def test_weights_and_groups_are_routed(iris):
    X, y = iris
    weight, groups = np.linspace(0.1, 2.0, 90), np.arange(90) % 9
    search = MKLClassifierCV(cv=GroupKFold(3), learner_values=[0.1, 10.0], geometry_values=[1.0])
    with sklearn.config_context(enable_metadata_routing=True):
        search.set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True)
        routed = cross_validate(
            search, X, y, cv=StratifiedKFold(3), params={"sample_weight": weight, "groups": groups},
            return_estimator=True,
        )  # fmt: skip
    for score, fitted, (train, test) in zip(
        routed["test_score"], routed["estimator"], StratifiedKFold(3).split(X, y), strict=True
    ):
        own = MKLClassifierCV(cv=GroupKFold(3), learner_values=[0.1, 10.0], geometry_values=[1.0])
        own.fit(X[train], y[train], sample_weight=weight[train], groups=groups[train])
        assert fitted.best_params_ == own.best_params_
        assert score == own.score(X[test], y[test], sample_weight=weight[test])
    piped = make_pipeline(StandardScaler(), MKLClassifier())
    weighted = piped.fit(X, y, mklclassifier__sample_weight=weight).decision_function(X)
    alone = MKLClassifier().fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_allclose(
        weighted, alone.decision_function(StandardScaler().fit_transform(X)), atol=1e-12
    )


def test_a_calibrated_model_gives_probabilities(iris, views):
    _, y = iris
    train, test = np.arange(60), np.arange(60, 90)
    calibrated = CalibratedClassifierCV(MKLClassifier(), cv=3, ensemble=False).fit(views[train], y[train])
    P = calibrated.predict_proba(views[test])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert log_loss(y[test], P) < 0.5  # log 3 = 1.1 for one who knows nothing
    own = MKLClassifier(probability=True).fit(views[train], y[train])
    five = CalibratedClassifierCV(MKLClassifier(), cv=5, ensemble=False).fit(views[train], y[train])
    np.testing.assert_allclose(own.predict_proba(views[test]), five.predict_proba(views[test]))


# -- several classes, by pairs or one by one


@pytest.mark.parametrize("learner", [Hinge(C=2.0), SquaredHinge(C=2.0)], ids=repr)
def test_pairs_of_classes_vote_as_scikit_learns_wrapper_lets_them(iris, learner):
    X, y = iris
    bank = KernelBank.per_view(FIXED, views=HALVES)
    plain = MKLClassifier(bank, learner=learner, geometry=LpBall(2.0), tol=1e-9)
    wrapped = OneVsOneClassifier(plain).fit(X, y)
    own = clone(plain).set_params(multiclass="one_vs_one").fit(X, y)
    np.testing.assert_allclose(own.decision_function(X), wrapped.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(own.predict(X), wrapped.predict(X))
    for weights, coef, (a, b), one in zip(
        own.kernel_weights_, own.dual_coef_, [(0, 1), (0, 2), (1, 2)], wrapped.estimators_, strict=True
    ):
        np.testing.assert_allclose(weights, one.kernel_weights_, atol=1e-4)
        used = set(y[own.support_[coef != 0.0]])
        assert used == {own.classes_[a], own.classes_[b]}


def test_pairs_of_classes_work_on_views_and_on_given_kernels(iris, views):
    X, y = iris
    K = np.stack([rbf_kernel(X[:, c], gamma=0.5) for c in HALVES.values()], axis=2)
    by_view = MKLClassifier(KernelBank.per_view(Gaussian(width=1.0)), multiclass="one_vs_one", tol=1e-8)
    given = MKLClassifier("precomputed", multiclass="one_vs_one", tol=1e-8)
    first = cross_val_predict(by_view, views, y, cv=3, method="decision_function")
    np.testing.assert_allclose(
        first, cross_val_predict(given, K, y, cv=3, method="decision_function"), atol=1e-5
    )
    assert (by_view.fit(views, y).classes_[first.argmax(axis=1)] == y).mean() > 0.85


def test_pairs_of_classes_are_searched_saved_and_calibrated(iris, tmp_path):
    X, y = iris
    search = MKLClassifierCV(
        KernelBank(FIXED), multiclass="one_vs_one", learner_values=[0.01, 1.0], geometry_values=[1.0], cv=3,
        probability=True,
    )  # fmt: skip
    search.fit(X, y)
    plain = MKLClassifier(KernelBank(FIXED), multiclass="one_vs_one", learner=Hinge(C=1.0))
    np.testing.assert_allclose(
        search.mean_score_[1, 0], cross_val_score(plain, X, y, cv=3).mean(), atol=1e-12
    )
    np.testing.assert_allclose(search.predict_proba(X).sum(axis=1), 1.0)
    save(search, tmp_path / "pairs.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "pairs.skops").decision_function(X), search.decision_function(X)
    )


def test_what_pairs_of_classes_cannot_do_is_said(iris, labels):
    X, y = iris
    pairs = MKLClassifier(multiclass="one_vs_one")
    with pytest.raises(ValueError, match="on features= use 'per_class' or 'shared'"):
        clone(pairs).set_params(features=Landmarks(20)).fit(X, y)
    with pytest.raises(ValueError, match="y has several columns of labels"):
        clone(pairs).fit(*labels)
    assert clone(pairs).fit(X, y == "setosa").decision_function(X).shape == (90,)
    with pytest.raises(NotOfferedError, match="a vote of pairs of classes"):
        contributions(clone(pairs).fit(X, y), X)


@pytest.mark.parametrize("kind", ["views", "given kernels"])
def test_one_against_the_rest_by_scikit_learns_wrapper(iris, views, kind):
    X, y = iris
    K = np.stack([rbf_kernel(X[:, c]) for c in HALVES.values()], axis=2)
    bank, data = (KernelBank.per_view(), views) if kind == "views" else ("precomputed", K)
    wrapped = OneVsRestClassifier(MKLClassifier(bank, tol=1e-8)).fit(data, y)
    own = MKLClassifier(bank, multiclass="per_class", tol=1e-8).fit(data, y)
    np.testing.assert_allclose(wrapped.decision_function(data), own.decision_function(data), atol=1e-6)
    np.testing.assert_array_equal(
        cross_val_predict(OneVsRestClassifier(MKLClassifier(bank)), data, y, cv=3),
        cross_val_predict(MKLClassifier(bank, multiclass="per_class"), data, y, cv=3),
    )


def test_row_numbers_stand_for_views_where_a_wrapper_takes_arrays_only(iris, views):
    X, y = iris
    model = MKLClassifier(KernelBank.per_view(FIXED), tol=1e-9)
    with pytest.raises(TypeError, match=r"FunctionTransformer\(views.__getitem__\)"):
        OneVsOneClassifier(model).fit(views, y)
    rows = np.arange(90)[:, None]
    wrapped = OneVsOneClassifier(make_pipeline(FunctionTransformer(views.__getitem__), model)).fit(
        rows[:60], y[:60]
    )
    own = clone(model).set_params(multiclass="one_vs_one").fit(views[:60], y[:60])
    np.testing.assert_allclose(
        wrapped.decision_function(rows[60:]), own.decision_function(views[60:]), atol=1e-5
    )
    matrices = Views({name: rbf_kernel(X[:, c]) for name, c in HALVES.items()})
    inner = make_pipeline(
        FunctionTransformer(matrices.__getitem__), MKLClassifier(KernelBank.per_view(Precomputed()))
    )
    assert cross_val_score(OneVsOneClassifier(inner), rows, y, cv=3).mean() > 0.85


# -- columns


def test_the_slopes_of_linear_kernels_give_the_decision(planted):
    X, y, z = planted
    bank = KernelBank.per_view(Linear(), views={"first": slice(0, 4), "last": slice(4, 8)})
    model = MKLClassifier(bank, geometry=LpBall(2.0)).fit(X, y)
    assert model.coef_.shape == (1, 8)
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_, model.decision_function(X), atol=1e-10)
    ridge = MKLRegressor(bank, geometry=LpBall(2.0)).fit(X, z)
    np.testing.assert_allclose(X @ ridge.coef_ + ridge.intercept_, ridge.predict(X), atol=1e-10)
    both = MKLRegressor(bank).fit(X, np.column_stack([z, -z]))
    np.testing.assert_allclose(both.coef_[0], -both.coef_[1], atol=1e-6)
    twice = MKLRegressor(
        KernelBank.per_view(Linear(), views={"a": [0, 0, 1], "b": slice(1, 8)}), geometry=LpBall(2.0)
    ).fit(X, z)
    np.testing.assert_allclose(X @ twice.coef_ + twice.intercept_, twice.predict(X), atol=1e-10)


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array, pd.DataFrame], ids=lambda w: w.__name__)
@pytest.mark.parametrize("learner", [Hinge(), UnbiasedSquaredHinge()], ids=repr)
def test_slopes_of_scaled_kernels_and_encoded_columns_are_those_of_finite_differences(planted, wrap, learner):
    X, y, _ = planted
    X = 3.0 * X + 1.0
    scaled = KernelBank([Linear()], scaling=[Centering(), UnitTrace()])
    encoded = KernelBank([Linear()], transform="by_type")
    for bank in [scaled] if wrap is scipy.sparse.csr_array else [scaled, encoded]:
        model = MKLClassifier(bank, learner=learner).fit(wrap(X), y)
        steps = [model.decision_function(wrap(X[:1] + row))[0] for row in np.vstack([np.zeros(8), np.eye(8)])]
        np.testing.assert_allclose(model.coef_[0], np.array(steps[1:]) - steps[0], atol=1e-9)


def test_recursive_elimination_finds_the_columns_that_count(planted):
    X, y, z = planted
    linear = RFE(MKLClassifier(KernelBank([Linear()])), n_features_to_select=3).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(linear.support_), [1, 4, 6])
    numbers = RFE(MKLRegressor(KernelBank([Linear()])), n_features_to_select=3).fit(X, z)
    np.testing.assert_array_equal(np.flatnonzero(numbers.support_), [1, 4, 6])
    bent = RFE(
        MKLClassifier(KernelBank.per_feature(), geometry=LpBall(2.0)), n_features_to_select=3, step=2
    ).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(bent.support_), [1, 4, 6])


def test_importances_of_columns_are_how_far_their_kernels_move_the_decision(planted):
    X, y, _ = planted
    model = MKLClassifier(KernelBank.per_feature(widths=[1.0], degrees=[]), geometry=LpBall(2.0)).fit(X, y)
    found = model.feature_importances_
    assert found.sum() == pytest.approx(1.0)
    assert set(np.argsort(found)[-3:]) == {1, 4, 6}
    moves = contributions(model, X).values.std(axis=0)  # one kernel of all columns, then one of each
    assert model.kernel_names_[0].startswith("x·")
    expected = moves[1:] + moves[0] / 8
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-9)
    assert SelectFromModel(model, prefit=True, max_features=3).transform(X).shape == (120, 3)


def test_what_has_no_slopes_nor_importances_says_why(planted, views, iris):
    X, y, _ = planted
    gaussian = MKLClassifier().fit(X, y)
    with pytest.raises(AttributeError, match=r"no coef_ here: kernel .* is not linear in the columns"):
        _ = gaussian.coef_
    with pytest.raises(AttributeError, match="not every column of 'x' has kernels of its own"):
        _ = MKLClassifier(KernelBank([Linear()])).fit(X, y).feature_importances_
    with pytest.raises(AttributeError, match="scaled sample by sample"):
        _ = MKLClassifier(KernelBank([Linear()], scaling=UnitDiagonal())).fit(X, y).coef_
    with pytest.raises(AttributeError, match="several views"):
        _ = MKLClassifier(KernelBank.per_view(Linear())).fit(views, iris[1]).coef_
    with pytest.raises(AttributeError, match="given as they are"):
        _ = MKLClassifier("precomputed").fit([X @ X.T], y).coef_
    with pytest.raises(AttributeError, match="not one weighted sum of kernels"):
        _ = LocalizedMKLClassifier(KernelBank([Linear()]), n_init=1, tol=1e-2).fit(X, y).coef_
    assert not hasattr(gaussian, "coef_")
    assert not hasattr(MKLClassifier(), "coef_")


def test_support_vectors_are_rows_of_the_table_and_counted_by_class(planted):
    X, y, _ = planted
    bank = KernelBank.per_view(Linear(), views={"last": slice(4, 8), "first": slice(0, 4)})
    model = MKLClassifier(bank, learner=Hinge(C=1.0), tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    one = MKLClassifier(KernelBank([Linear()]), learner=Hinge(C=1.0), tol=1e-9).fit(X, y)
    svc = SVC(kernel="linear", C=1.0, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(one.n_support_, svc.n_support_)
    np.testing.assert_array_equal(one.support_vectors_, svc.support_vectors_[np.argsort(svc.support_)])
    np.testing.assert_allclose(one.coef_, svc.coef_, atol=1e-4)
    with pytest.raises(AttributeError, match=r"X\[model.support_\]"):
        _ = MKLClassifier(KernelBank([Linear()], transform="by_type")).fit(X, y).support_vectors_


def test_permuting_a_column_costs_what_it_counts(planted):
    X, y, _ = planted
    model = MKLClassifier().fit(X[:80], y[:80])
    found = permutation_importance(model, X[80:], y[80:], n_repeats=10, random_state=0).importances_mean
    assert found.argmax() == 1
    assert found[1] > 0.1
    assert np.abs(found[[0, 2, 3, 5, 7]]).max() < 0.1


def test_partial_dependence_on_a_column_is_its_slope(planted):
    X, y, z = planted
    ridge = MKLRegressor(KernelBank([Linear()])).fit(X, z)
    found = partial_dependence(ridge, X, [1], grid_resolution=5)
    slope = np.diff(found["average"][0]) / np.diff(found["grid_values"][0])
    np.testing.assert_allclose(slope, ridge.coef_[1], rtol=1e-9)
    bent = partial_dependence(MKLClassifier().fit(X, y), X, [1, 0], grid_resolution=5, method="brute")
    assert bent["average"].shape == (1, 5, 5)


def test_a_learning_curve_is_that_of_fits_to_fewer_samples(iris, views):
    _, y = iris
    sizes, _, scores = learning_curve(MKLClassifier(), views, y, cv=3, train_sizes=[20, 60], shuffle=False)
    np.testing.assert_array_equal(sizes, [20, 60])
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(np.zeros(90), y)):
        for k, size in enumerate((20, 60)):
            model = MKLClassifier().fit(views[train[:size]], y[train[:size]])
            assert scores[k, fold] == model.score(views[test], y[test])


# -- several labels per sample


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, scipy.sparse.csr_array, np.ndarray.tolist, list])
def test_every_label_is_learnt_by_itself(labels, wrap):
    X, Y = labels
    model = MKLClassifier(tol=1e-8).fit(X, wrap(Y))
    assert model.kernel_weights_.shape == (3, len(model.kernel_names_))
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    for label, column in enumerate(Y.T):
        alone = MKLClassifier(tol=1e-8).fit(X, column)
        np.testing.assert_allclose(
            model.decision_function(X)[:, label], alone.decision_function(X), atol=1e-9
        )
        assert model.n_support_[label] == alone.support_.size


def test_average_precision_of_every_label(labels):
    X, Y = labels
    train, test = np.arange(70), np.arange(70, 100)
    values = MKLClassifier().fit(X[train], Y[train]).decision_function(X[test])
    each = average_precision_score(Y[test], values, average=None)
    np.testing.assert_array_equal(each > Y[test].mean(axis=0) + 0.1, True)
    shared = MKLClassifier(multiclass="shared").fit(X[train], Y[train])
    assert shared.kernel_weights_.ndim == 1
    again = average_precision_score(Y[test], shared.decision_function(X[test]), average=None)
    np.testing.assert_array_equal(again > Y[test].mean(axis=0) + 0.1, True)


def test_several_labels_are_searched_by_average_precision(labels):
    X, Y = labels
    search = MKLClassifierCV(
        cv=3, learner_values=[0.1, 10.0], geometry_values=[0.5, 1.0], scoring="average_precision"
    )
    search.fit(X, Y)
    scores = cross_val_score(clone(search.best_estimator_), X, Y, cv=KFold(3), scoring="average_precision")
    assert search.best_score_ == pytest.approx(scores.mean(), abs=1e-3)
    exact = MKLClassifierCV(cv=3, learner_values=[1.0], geometry_values=[1.0]).fit(X, Y)
    subset = cross_val_score(exact.best_estimator_, X, Y, cv=KFold(3))
    np.testing.assert_allclose(exact.cv_results_["score"], subset, atol=1e-12)


def test_probabilities_of_every_label(labels, tmp_path):
    X, Y = labels
    weight = np.linspace(0.5, 1.5, 100)
    model = MKLClassifier(probability=True).fit(X, Y, sample_weight=weight)
    P = model.predict_proba(X)
    assert P.shape == Y.shape
    for label, column in enumerate(Y.T):
        alone = CalibratedClassifierCV(MKLClassifier(), cv=5, ensemble=False)
        alone.fit(X, column, sample_weight=weight)
        np.testing.assert_allclose(P[:, label], alone.predict_proba(X)[:, 1], atol=1e-6)
    save(model, tmp_path / "labels.skops")
    for again in (load(tmp_path / "labels.skops"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), P)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_several_labels_on_features_and_along_a_path(labels):
    X, Y = labels
    model = MKLClassifier(KernelBank(FIXED), features=Landmarks(100), random_state=0).fit(X, Y)
    exact = MKLClassifier(KernelBank(FIXED)).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=0.02)
    assert (model.predict(X) == exact.predict(X)).mean() > 0.98
    along = path(MKLClassifier(), X, Y, param="learner__C", values=[0.1, 1.0])
    np.testing.assert_array_equal(along.train_score, [m.score(X, Y) for m in along.models])


def test_several_targets_of_many_classes_by_scikit_learns_wrapper(iris, views):
    X, y = iris
    targets = np.column_stack([y, np.where(X[:, 0] > 0, "long", "short")])
    wrapped = MultiOutputClassifier(MKLClassifier()).fit(views, targets)
    np.testing.assert_array_equal(
        wrapped.predict(views)[:, 1], MKLClassifier().fit(views, targets[:, 1]).predict(views)
    )
    assert (wrapped.predict(views) == targets).all(axis=1).mean() > 0.9


def test_models_of_several_labels_are_explained(labels):
    X, Y = labels
    split = Views({"first": X[:, :3], "last": X[:, 3:]})
    model = MKLClassifier().fit(split, Y)
    found = contributions(model, split)
    np.testing.assert_allclose(found.decision, model.decision_function(split), atol=1e-9)
    costs = leave_view_out(model, split, Y, cv=3).costs()
    assert set(costs) == {"first", "last"}
    with pytest.raises(TypeError, match="one label per sample"):
        write_report(model, split, Y, "unused.html")


def test_what_several_labels_cannot_do_is_said(labels):
    X, Y = labels
    with pytest.raises(ValueError, match=r"Label 3 is \[1\] in all samples"):
        MKLClassifier().fit(X, np.column_stack([Y, np.ones(100, dtype=int)]))
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        MKLClassifier(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="100 samples but y has 90 rows"):
        MKLClassifier().fit(X, Y[:90])
    with pytest.raises(ValueError, match="1d array"):
        FisherMKLClassifier().fit(X, Y)
    rare = np.column_stack([Y, np.arange(100) < 3])
    with pytest.raises(ValueError, match="smallest class of label 3 has 3"):
        MKLClassifier(probability=True).fit(X, rare)
    balanced = OneVsRestClassifier(MKLClassifier(class_weight="balanced")).fit(X, Y)
    assert balanced.predict(X).shape == Y.shape
