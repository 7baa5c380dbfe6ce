"""The search agrees with GridSearchCV over the same folds, for a fraction of the work."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.banks import VIEWS, as_views, per_view
from tests.reference.problems import random_problem

from kernelweave import KernelBank, MKLClassifier, MKLClassifierCV
from kernelweave.bank.fitted import FittedBank
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex, Simplex, Uniform
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge, NuHinge, SquaredHinge

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
COSTS = [0.1, 10.0, 1.0]  # out of order: the walk sorts them, the results do not
SMALL = {"learner_values": [0.5, 5.0], "cv": 2, "tol": 1e-3}


def hinge_loss(y, values):
    """A score without ties, from decision values."""
    return np.maximum(0.0, 1.0 - np.where(y == y.max(), 1.0, -1.0) * values).mean()


SMOOTH = make_scorer(hinge_loss, greater_is_better=False, response_method="decision_function")


def exhaustive(search, X, y, grid, **fit):
    """The same search by GridSearchCV."""
    params = {name: getattr(search, name) for name in MKLClassifier().get_params(deep=False)}
    model = MKLClassifier(**params | {"geometry": search.part("geometry")})
    full = GridSearchCV(clone(model), grid, cv=search.cv, scoring=search.scoring, error_score="raise")
    return full.fit(X, y, **fit)


def per_candidate(search, full, name):
    """GridSearchCV's score of every row of the search, in that order."""
    rows = search.cv_results_
    names = [column for column in rows if "__" in column]
    scores = {
        tuple(params[key] for key in names): [full.cv_results_[f"split{k}_{name}"][i] for k in range(3)]
        for i, params in enumerate(full.cv_results_["params"])
    }
    keys = zip(*(rows[key] for key in names), strict=True)
    return np.array([scores[key][fold] for key, fold in zip(keys, rows["fold"], strict=True)])


CASES = [
    (BoxSimplex(theta=1.0), "theta", [1.0, 1 / 6, 0.4], Hinge()),
    (BoxSimplex(nu=1.0), "nu", [0.2, 0.6, 1.0], Hinge()),
    (RidgeSimplex(), "theta", [0.1, 10.0], Hinge()),
    (LpBall(2.0), "p", [1.0, 4 / 3, np.inf], SquaredHinge()),
    (ElasticNetBall(), "v", [0.0, 0.5, 1.0], Hinge()),
]


@pytest.mark.parametrize(("geometry", "param", "values", "learner"), CASES, ids=[repr(c[0]) for c in CASES])
def test_it_agrees_with_the_exhaustive_search(cancer, geometry, param, values, learner):
    X, y = cancer
    search = MKLClassifierCV(
        per_view(),
        learner=learner,
        geometry=geometry,
        learner_values=COSTS,
        geometry_values=values,
        cv=FOLDS,
        scoring=SMOOTH,
        tol=1e-7,
    ).fit(X, y)
    full = exhaustive(search, X, y, {"learner__C": COSTS, f"geometry__{param}": values})
    np.testing.assert_allclose(
        search.cv_results_["score"], per_candidate(search, full, "test_score"), atol=2e-3
    )
    assert search.best_params_ == full.best_params_
    assert search.best_score_ == pytest.approx(full.best_score_, abs=1e-3)
    assert search.mean_score_.shape == (3, len(values))
    assert search.mean_score_[search.best_index_] == search.best_score_ == search.mean_score_.max()
    np.testing.assert_allclose(
        search.decision_function(X), full.best_estimator_.decision_function(X), atol=1e-6
    )


def test_accuracies_are_those_of_the_exhaustive_search(cancer):
    X, y = cancer
    names = np.array(["benign", "malignant"])[y]
    search = MKLClassifierCV(
        per_view(),
        learner_values=COSTS,
        geometry_values=[0.2, 1.0],
        class_weight="balanced",
        cv=FOLDS,
        tol=1e-7,
    )
    weight = np.linspace(0.5, 1.5, len(y))
    search.fit(X, names, sample_weight=weight)
    grid = {"learner__C": COSTS, "geometry__theta": [0.2, 1.0]}
    full = exhaustive(search, X, names, grid, sample_weight=weight)
    np.testing.assert_allclose(search.cv_results_["score"], per_candidate(search, full, "test_score"))
    assert search.best_score_ == pytest.approx(full.best_score_)
    assert set(search.predict(X)) == {"benign", "malignant"}
    assert search.score(X, names) == (search.predict(X) == names).mean()


@pytest.mark.parametrize("multiclass", ["per_class", "shared"])
def test_several_classes(multiclass):
    X, y = load_iris(return_X_y=True)
    bank = KernelBank.per_view(Gaussian(), views={"sepal": [0, 1], "petal": [2, 3]})
    search = MKLClassifierCV(
        bank,
        learner_values=[0.1, 10.0],
        geometry_values=[0.5, 1.0],
        multiclass=multiclass,
        cv=FOLDS,
        tol=1e-6,
    ).fit(X, y)
    full = exhaustive(search, X, y, {"learner__C": [0.1, 10.0], "geometry__theta": [0.5, 1.0]})
    np.testing.assert_allclose(search.cv_results_["score"], per_candidate(search, full, "test_score"))
    assert search.kernel_weights_.shape == ((3, 2) if multiclass == "per_class" else (2,))
    assert search.decision_function(X).shape == (150, 3)


def test_views_arrays_and_frames_are_split_alike(cancer):
    X, y = cancer
    bank = KernelBank.per_view(Gaussian())
    by_views = MKLClassifierCV(bank, **SMALL).fit(as_views(X), y)
    named = KernelBank.per_view(Gaussian(), views=VIEWS)
    by_frame = MKLClassifierCV(named, **SMALL).fit(X, y)
    by_array = MKLClassifierCV(named, **SMALL).fit(X.to_numpy(), y.to_numpy())
    for other in (by_frame, by_array):
        np.testing.assert_array_equal(by_views.cv_results_["score"], other.cv_results_["score"])
        np.testing.assert_array_equal(by_views.kernel_weights_, other.kernel_weights_)
    assert list(by_frame.feature_names_in_) == list(X.columns)


def test_kernel_matrices_are_split_by_rows_and_columns():
    Ks, y = random_problem(0, n=60, M=4)
    cube = np.stack(Ks, axis=2)
    values = {"learner_values": [0.1, 1.0], "geometry_values": [0.25, 0.5, 1.0]}
    search = MKLClassifierCV("precomputed", **values, cv=FOLDS, tol=1e-7, scoring=SMOOTH).fit(cube, y)
    full = exhaustive(search, cube, y, {"learner__C": [0.1, 1.0], "geometry__theta": [0.25, 0.5, 1.0]})
    np.testing.assert_allclose(
        search.cv_results_["score"], per_candidate(search, full, "test_score"), atol=1e-4
    )
    by_list = clone(search).fit(Ks, y)
    np.testing.assert_array_equal(by_list.mean_score_, search.mean_score_)
    np.testing.assert_allclose(by_list.decision_function(Ks), search.decision_function(cube))


def test_a_search_in_a_pipeline_and_over_groups(cancer):
    X, y = cancer
    groups = np.arange(len(y)) % 7
    search = MKLClassifierCV(per_view(), **SMALL | {"cv": GroupKFold(3)}).fit(X, y, groups=groups)
    assert search.n_splits_ == 3
    model = make_pipeline(StandardScaler(), MKLClassifierCV(per_view(), **SMALL)).fit(X, y)
    assert model.score(X, y) > 0.9


def test_folds_may_be_masks_or_leave_samples_out(cancer):
    X, y = cancer
    rows = np.arange(len(y))
    index = [(rows[rows % 2 == 0], rows[rows % 4 == 1])]
    mask = [(rows % 2 == 0, rows % 4 == 1)]
    a, b = (MKLClassifierCV(per_view(), **SMALL | {"cv": cv}).fit(X, y) for cv in (index, mask))
    np.testing.assert_array_equal(a.mean_score_, b.mean_score_)
    splits = ShuffleSplit(2, test_size=0.3, random_state=0)
    assert MKLClassifierCV(per_view(), **SMALL | {"cv": splits}).fit(X, y).n_splits_ == 2


def test_neighbours_save_machines_and_kernels_are_computed_once_per_fold(cancer, monkeypatch):
    X, y = cancer
    fits, passes = [], []
    make = FittedBank.__init__

    def counted_fit(self, items, blocks, X, *rest, **named):
        fits.append(len(X))
        make(self, items, blocks, X, *rest, **named)

    def counted_pass(verb):
        def counted(self, X, *how, **named):
            passes.append(len(X))
            return verb(self, X, *how, **named)

        return counted

    monkeypatch.setattr(FittedBank, "__init__", counted_fit)
    for verb in ("cross", "products", "weighted_products"):
        monkeypatch.setattr(FittedBank, verb, counted_pass(getattr(FittedBank, verb)))
    bank = KernelBank([Gaussian(scale=s) for s in np.geomspace(0.05, 20.0, 12)])
    costs, thetas = np.logspace(-1, 2, 4), np.geomspace(1 / 12, 1.0, 6)
    search = MKLClassifierCV(
        bank, learner_values=costs, geometry_values=thetas, cv=FOLDS, refit=False, dtype="float64"
    ).fit(X, y)
    assert fits == [106, 107, 107]  # the training rows only
    assert passes == [54, 53, 53]  # the held-out rows, once for all candidates
    warm, cold = search.cv_results_["machines"].sum(), 0
    for train, _ in FOLDS.split(X, y):
        for C in costs:
            for theta in thetas:
                model = MKLClassifier(bank, learner=Hinge(C=C), geometry=BoxSimplex(theta=theta))
                cold += model.fit(X.iloc[train], y.iloc[train]).n_iter_
    assert warm < 0.65 * cold
    assert search.cv_results_["relative_gap"].max() <= 1e-4


def test_results_are_tidy(cancer):
    X, y = cancer
    search = MKLClassifierCV(per_view(), **SMALL, geometry_values=[1.0, 0.3]).fit(X, y)
    frame = search.frame()
    columns = ["learner__C", "geometry__theta", "fold", "score", "relative_gap", "machines", "seconds"]
    assert list(frame.columns) == [*columns, "active_kernels"]
    assert list(frame["fold"]) == [0, 1] * 4
    assert list(frame["learner__C"].unique()) == [0.5, 5.0] == list(search.learner_values_)
    assert list(frame["geometry__theta"].unique()) == [1.0, 0.3] == list(search.geometry_values_)
    means = frame.groupby(["learner__C", "geometry__theta"], sort=False)["score"].mean()
    np.testing.assert_allclose(means.to_numpy().reshape(2, 2), search.mean_score_)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(search.cv_results_))
    assert (frame["machines"] >= 1).all()
    assert (frame["seconds"] > 0).all()
    assert frame["active_kernels"].between(1, 6).all()


def test_all_that_the_best_model_offers_is_at_hand(cancer):
    X, y = cancer
    search = MKLClassifierCV(per_view(), **SMALL, geometry_values=[0.3, 1.0], probability=True).fit(X, y)
    best = search.best_estimator_
    assert type(best) is MKLClassifier
    assert {name: best.get_params()[name] for name in search.best_params_} == search.best_params_
    alone = MKLClassifier(per_view(), geometry=BoxSimplex(), tol=1e-3, probability=True)
    alone.set_params(**search.best_params_).fit(X, y)
    for name in ("kernel_weights_", "dual_coef_", "support_", "intercept_"):
        np.testing.assert_array_equal(getattr(search, name), getattr(alone, name))
    assert search.certificate_ == alone.certificate_
    assert search.kernel_names_ == alone.kernel_names_
    np.testing.assert_array_equal(search.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(search.combined_kernel(X[:5]), alone.combined_kernel(X[:5]))


def indifferent(model, X, y):
    return 0.5


@pytest.mark.parametrize(
    ("params", "best"),
    [
        ({"learner_values": [10.0, 1.0], "geometry_values": [1.0, 0.5]}, (1, 1)),
        ({"learner_values": [1.0], "geometry": LpBall(), "geometry_values": [1.0, 4.0, 2.0]}, (0, 1)),
        ({"learner_values": [1.0], "geometry": ElasticNetBall(), "geometry_values": [0.9, 0.1]}, (0, 1)),
        ({"learner_values": [1.0], "geometry": BoxSimplex(nu=0.5), "geometry_values": [0.2, 0.9]}, (0, 1)),
        ({"learner": NuHinge(), "learner_values": [0.1, 0.4], "geometry": Simplex()}, (1, 0)),
        ({"learner_param": "tol", "learner_values": [1e-5, 1e-6], "geometry": Uniform()}, (0, 0)),
    ],
)
def test_equal_scores_go_to_the_simpler_model(cancer, params, best):
    X, y = cancer
    search = MKLClassifierCV(per_view(), cv=2, refit=False, scoring=indifferent, **params).fit(X, y)
    assert search.best_index_ == best


def test_geometries_without_a_parameter_have_one_column(cancer):
    X, y = cancer
    search = MKLClassifierCV(per_view(), geometry=Simplex(), **SMALL).fit(X, y)
    assert search.mean_score_.shape == (2, 1)
    assert search.geometry_values_ == (None,)
    assert set(search.best_params_) == {"learner__C"}
    assert "geometry__theta" not in search.cv_results_


def test_default_values_depend_on_the_number_of_kernels_and_on_the_classes():
    X, y = load_iris(return_X_y=True)
    search = MKLClassifierCV(per_four(), learner=NuHinge(), cv=2, refit=False, tol=1e-3).fit(X, y)
    np.testing.assert_allclose(search.geometry_values_, np.geomspace(1 / 4, 1.0, 5))
    np.testing.assert_allclose(search.learner_values_, 2 / 3 * np.array([0.8, 0.4, 0.2, 0.1, 0.05]))
    one = MKLClassifierCV(KernelBank([Gaussian()]), cv=2, tol=1e-3).fit(X, y)
    assert one.geometry_values_ == (1.0,)
    assert one.learner_values_ == (0.01, 0.1, 1.0, 10.0, 100.0)


def per_four():
    return KernelBank([Gaussian(scale=s) for s in (0.25, 1.0, 4.0, 16.0)])


def test_scorers_of_decision_values_and_their_own_functions(cancer):
    X, y = cancer
    by_name = MKLClassifierCV(per_view(), scoring="roc_auc", **SMALL).fit(X, y)
    by_hand = MKLClassifierCV(
        per_view(), scoring=lambda m, X, y: roc_auc_score(y, m.decision_function(X)), **SMALL
    ).fit(X, y)
    np.testing.assert_array_equal(by_name.mean_score_, by_hand.mean_score_)
    assert by_name.score(X, y) == roc_auc_score(y, by_name.decision_function(X))


def test_a_scorer_may_look_at_other_samples_than_the_held_out_ones(cancer):
    X, y = cancer

    def first_five(model, X_test, y_test):
        few = X_test.iloc[:5]
        np.testing.assert_allclose(model.decision_function(few), model.decision_function(X_test)[:5])
        return 1.0

    assert MKLClassifierCV(per_view(), scoring=first_five, **SMALL).fit(X, y).best_score_ == 1.0


def test_one_fold_without_a_class_still_counts(cancer):
    X, y = load_iris(return_X_y=True)
    search = MKLClassifierCV(per_four(), **SMALL | {"cv": KFold(3)}, geometry=Uniform()).fit(X, y)
    assert search.best_score_ == 0.0  # every class is held out once as a whole
    assert search.classes_.size == 3
