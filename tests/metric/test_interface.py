"""What users of pairs expect of any metric learner: its distance, its names of points, its threshold, its prior."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from tests.metric.metrics import (
    BOUNDS,
    LEARNERS,
    PAIRS,
    PRIVILEGED,
    Y,
    as_pairs,
    assert_same,
    fit,
    random_pairs,
)

from kernelweave import ITML, ITMLPlus, ITMLSelect, SupervisedMetric, presets
from kernelweave.errors import InfeasibleError

POINTS = PAIRS.reshape(-1, PAIRS.shape[2])
PLACES = np.arange(len(POINTS)).reshape(-1, 2)
SAMPLES, LABELS = np.random.default_rng(3).normal(size=(60, 4)), np.arange(60) % 3
TOYS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}


def fitted(cls):
    if cls is SupervisedMetric:
        return SupervisedMetric(random_state=0).fit(SAMPLES, LABELS)
    return fit(cls, privileged=PRIVILEGED)


@pytest.mark.parametrize("cls", [*LEARNERS, SupervisedMetric])
def test_the_distance_is_a_metric_and_the_one_of_pairs(cls, rng):
    model = fitted(cls)
    distance = model.get_metric()
    for x, y, z in rng.normal(size=(20, 3, 4)):
        assert distance(x, y) == pytest.approx(distance(y, x))
        assert distance(x, x) == 0.0 < distance(x, y) <= distance(x, z) + distance(z, y)
        assert distance(x, y, squared=True) == pytest.approx(distance(x, y) ** 2)
        assert distance(x, y, squared=True) == pytest.approx(
            (x - y) @ model.get_mahalanobis_matrix() @ (x - y)
        )
    np.testing.assert_allclose([distance(*pair) for pair in PAIRS], model.pair_distance(PAIRS))
    np.testing.assert_array_equal(model.pair_score(PAIRS), -model.pair_distance(PAIRS))
    np.testing.assert_allclose(model.components_.T @ model.components_, model.get_mahalanobis_matrix())
    mapped = model.transform(POINTS)
    np.testing.assert_allclose(np.linalg.norm(mapped[::2] - mapped[1::2], axis=1), model.pair_distance(PAIRS))


@pytest.mark.parametrize("cls", [*LEARNERS, SupervisedMetric])
@pytest.mark.parametrize("points", [(np.zeros(3), np.zeros(4)), (np.zeros(4), np.zeros((1, 4))), (1.0, 2.0)])
def test_the_distance_refuses_what_are_not_two_points(cls, points):
    with pytest.raises(ValueError, match="two points of 4 features"):
        fitted(cls).get_metric()(*points)


def test_the_distance_serves_scikit_learn_and_outlives_another_fit():
    model = fit()
    distance = model.get_metric()
    D = pairwise_distances(POINTS, metric=distance)
    np.testing.assert_allclose(D, pairwise_distances(model.transform(POINTS)), atol=1e-10)
    labels = np.arange(len(POINTS)) % 2
    KNeighborsClassifier(1, metric=distance).fit(POINTS, labels).predict(POINTS)
    before = distance(POINTS[0], POINTS[1])
    model.set_params(gamma=100.0).fit(PAIRS[:10], Y[:10])
    assert distance(POINTS[0], POINTS[1]) == before


@pytest.mark.parametrize("cls", LEARNERS)
def test_points_may_be_given_by_place_or_by_name(cls):
    """A table and places, or a function and names, instead of the points themselves."""
    names = np.array([f"point {place:03d}" for place in range(len(POINTS))])
    table = dict(zip(names, POINTS, strict=True))
    direct = fit(cls, privileged=PRIVILEGED)
    for given, preprocessor in ((PLACES, POINTS), (names[PLACES], lambda asked: [table[n] for n in asked])):
        model = fit(cls, given, privileged=PRIVILEGED, preprocessor=preprocessor)
        assert_same(model.get_mahalanobis_matrix(), direct.get_mahalanobis_matrix(), 1e-10)
        assert model.threshold_ == pytest.approx(direct.threshold_)
        np.testing.assert_allclose(model.pair_distance(given), direct.pair_distance(PAIRS))
        np.testing.assert_array_equal(model.predict(given), direct.predict(PAIRS))
        np.testing.assert_allclose(model.transform(given[:, 0]), direct.transform(PAIRS[:, 0]))
        assert model.score(given, Y) == pytest.approx(direct.score(PAIRS, Y))
        np.testing.assert_allclose(model.pair_distance(PAIRS), direct.pair_distance(PAIRS))  # still points


def test_labelled_samples_may_be_given_by_place_or_by_name():
    direct = SupervisedMetric(random_state=0).fit(SAMPLES, LABELS)
    places = np.arange(60)
    ends = places.reshape(-1, 2)
    for preprocessor in (SAMPLES, lambda asked: SAMPLES[asked]):
        model = SupervisedMetric(random_state=0, preprocessor=preprocessor).fit(places, LABELS)
        np.testing.assert_array_equal(model.components_, direct.components_)
        np.testing.assert_array_equal(model.transform(places[:5]), direct.transform(SAMPLES[:5]))
        np.testing.assert_array_equal(model.pair_distance(ends), direct.pair_distance(SAMPLES[ends]))


def test_a_preprocessor_that_loses_points_is_named():
    with pytest.raises(ValueError, match=r"preprocessor returned 1 points for \d+ names"):
        fit(pairs=PLACES, preprocessor=lambda asked: POINTS[:1])  # noqa: ARG005
    with pytest.raises(ValueError, match=r"pairs of names must have shape \(n, 2\)"):
        fit(pairs=PLACES[:, :1], preprocessor=lambda asked: POINTS[asked])


@pytest.mark.parametrize("cls", [ITML, ITMLPlus])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"strategy": "f_beta", "beta": 0.05},
        {"strategy": "max_tpr", "min_rate": 1.0},
        {"strategy": "max_tnr", "min_rate": 0.9},
    ],
    ids=lambda params: params.get("strategy", "default"),
)
def test_fit_calibrates_the_threshold_as_asked(cls, params):
    model = cls(bounds=BOUNDS, random_state=0).fit(PAIRS, Y, calibration_params=params)
    at_fit = model.threshold_
    assert model.calibrate_threshold(PAIRS, Y, **params).threshold_ == at_fit
    if params:
        assert at_fit != cls(bounds=BOUNDS, random_state=0).fit(PAIRS, Y).threshold_
    supervised = SupervisedMetric(cls(), random_state=0)
    supervised.fit(SAMPLES, LABELS, calibration_params=params)
    pairs = SAMPLES[supervised.pairs_]
    at_fit = supervised.learner_.threshold_
    assert (
        supervised.learner_.calibrate_threshold(pairs, supervised.pair_labels_, **params).threshold_ == at_fit
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"stategy": "accuracy"}, "calibrated by strategy, min_rate and beta; got 'stategy'"),
        ({"strategy": "best"}, "strategy must be"),
        ({"strategy": "max_tpr"}, "min_rate"),
        ({"strategy": "f_beta", "beta": -1.0}, "beta must be a number above 0"),
    ],
)
def test_wrong_calibrations_are_refused_before_anything_is_learnt(params, message):
    model = ITML()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(PAIRS, Y, calibration_params=params)
    assert not hasattr(model, "components_")


def test_predictions_follow_the_threshold():
    model = fit()
    similar = [(model.set_threshold(t).predict(PAIRS) == 1).sum() for t in (-1.0, 0.5, 1.5, 1e9)]
    assert similar == sorted(similar)
    assert (similar[0], similar[-1]) == (0, len(Y))
    best = model.calibrate_threshold(PAIRS, Y)
    reached = accuracy_score(Y, best.predict(PAIRS))
    for threshold in np.r_[0.0, model.pair_distance(PAIRS)]:
        assert accuracy_score(Y, model.set_threshold(threshold).predict(PAIRS)) <= reached


@pytest.mark.parametrize("cls", LEARNERS)
def test_a_random_prior_is_definite_and_goes_by_the_seed(cls):
    metrics = []
    for seed in (0, 0, 1):
        model = cls(prior="random", gamma=1e-8, random_state=seed).fit(PAIRS, Y, privileged=PRIVILEGED)
        metrics.append(model.get_mahalanobis_matrix())  # at this price it stays at the prior
        assert np.linalg.eigvalsh(metrics[-1])[0] > 0.0
    np.testing.assert_array_equal(metrics[0], metrics[1])
    assert np.abs(metrics[0] - metrics[2]).max() > 0.01
    assert np.abs(metrics[0] - np.eye(4)).max() > 0.01


def test_pairs_that_are_left_out_still_count_for_the_bounds():
    model = ITMLSelect(drop=0.4, random_state=0).fit(PAIRS, Y, privileged=PRIVILEGED)
    everything = ITML(random_state=0).fit(PAIRS, Y)
    kept = ITML(random_state=0).fit(PAIRS[model.kept_], Y[model.kept_])
    assert not model.kept_.all()
    assert model.bounds_ == everything.bounds_ != kept.bounds_


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_thesis_runs_where_the_hard_form_has_no_solution(seed):
    V, W, y = random_pairs(seed, n=60, d=3, g=2)
    pairs, privileged = as_pairs(V), as_pairs(W)
    with pytest.raises(InfeasibleError):
        presets.itml_plus_hard(random_state=0).fit(pairs, y, privileged=privileged)
    with pytest.warns(ConvergenceWarning, match="relative duality gap of inf"):
        model = presets.itml_plus_thesis(random_state=0).fit(pairs, y, privileged=privileged)
    assert model.duality_gap_ == model.certificate_.gap == np.inf
    assert np.linalg.eigvalsh(model.get_mahalanobis_matrix())[0] > 0.0
    assert model.n_iter_ <= 10


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("cls", LEARNERS)
def test_no_default_ends_short_of_its_tolerance_on_toy_sets(cls, name):
    X, y = TOYS[name](return_X_y=True)
    half = X.shape[1] // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iris some flowers are equal, which is said
        warnings.simplefilter("error", ConvergenceWarning)
        model = SupervisedMetric(cls(), random_state=0).fit(X[:, :half], y, privileged=X[:, half:])
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("cls", LEARNERS)
def test_no_default_ends_short_of_its_tolerance_on_4000_pairs_of_20_columns(cls):
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(4000, 2, 20))
    y = np.where(np.abs(pairs[:, 0, :3] - pairs[:, 1, :3]).sum(axis=1) < 2.5, 1, -1)
    privileged = pairs[:, :, :5] + 0.3 * rng.normal(size=(4000, 2, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iris some flowers are equal, which is said
        warnings.simplefilter("error", ConvergenceWarning)
        model = cls(random_state=0).fit(pairs, y, privileged=privileged)
    assert model.duality_gap_ <= 1e-6
