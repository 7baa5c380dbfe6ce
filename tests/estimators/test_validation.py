"""What is checked before any work: parameters, labels, what a learner is for, class weights."""

import re

import numpy as np
import pytest
from sklearn.utils.multiclass import check_classification_targets

from kernelweave import (
    ITML,
    SVM2K,
    FHeuristicClassifier,
    ITMLSelect,
    KernelBank,
    LocalizedMKLClassifier,
    MKLClassifier,
    MKLClusterer,
    MKLRegressor,
    MultiInstanceMKLClassifier,
    ObscureClassifier,
    RandomFourier,
    SampleAdaptiveMKLClassifier,
    SemiSupervisedMKLClassifier,
    learners,
)
from kernelweave.errors import IncompatiblePartsError
from kernelweave.estimators.validation import (
    check_count,
    check_from_zero,
    check_number,
    check_share,
    encode_labels,
)
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import EpsilonInsensitive, Fisher, Hinge, NuHinge, OneClass, Square, SquaredHinge
from kernelweave.solvers import DualAscent

LINEAR = KernelBank([Linear()])
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
BAGS = [X[:2], X[2:4], X[4:6], X[6:8]]
PAIRS = X.reshape(6, 2, 3)

LEGAL = [
    lambda: check_number("a", 0.5, above=0.0),
    lambda: check_number("a", None, above=0.0, optional=True),
    lambda: check_from_zero("a", 0),
    lambda: check_share("a", 1),
    lambda: check_share("a", None, optional=True),
    lambda: check_count("a", np.int64(1)),
    lambda: check_count("a", 0, least=0),
    lambda: check_count("a", None, optional=True),
]
ILLEGAL = {
    "a must be a number above 0; got 0.": lambda: check_number("a", 0, above=0.0),
    "a must be a number between 0 and 1; got True.": lambda: check_number("a", True, above=0.0, below=1.0),
    "a must be a number above 0 or None; got '1'.": lambda: check_number("a", "1", above=0.0, optional=True),
    "a must be a number of at least 0; got -1.": lambda: check_from_zero("a", -1),
    "a must be a number from 0 to below 1; got 1.0.": lambda: check_from_zero("a", 1.0, below=1.0),
    "a must be a number from 0 to 1; got nan.": lambda: check_share("a", float("nan")),
    "a must be a number above 0 and at most 1 or None; got 0.": lambda: check_share(
        "a", 0, positive=True, optional=True
    ),
    "a must be a whole number of at least 1; got None.": lambda: check_count("a", None),
    "a must be None or a whole number of at least 1; got 0.": lambda: check_count("a", 0, optional=True),
    "a must be a whole number of at least 2; got True.": lambda: check_count("a", True, least=2),
}


@pytest.mark.parametrize("check", LEGAL)
def test_what_is_legal_passes(check):
    check()


@pytest.mark.parametrize(("message", "check"), ILLEGAL.items(), ids=ILLEGAL)
def test_what_is_not_is_named_with_what_would_be(message, check):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check()


@pytest.mark.parametrize(
    ("model", "data", "name"),
    [
        (MKLClassifier(max_iter=0), (X, Y), "max_iter"),
        (LocalizedMKLClassifier(n_init=None), (X, Y), "n_init"),
        (LocalizedMKLClassifier(n_init=0), (X, Y), "n_init"),
        (SampleAdaptiveMKLClassifier(max_rounds=None), (X, Y), "max_rounds"),
        (SemiSupervisedMKLClassifier(max_rounds=None), (X, Y), "max_rounds"),
        (SemiSupervisedMKLClassifier(threshold="cv"), (X, Y), "threshold"),
        (MKLClusterer(max_rounds=0), (X,), "max_rounds"),
        (MultiInstanceMKLClassifier(cv=1), (BAGS, Y[:4]), "cv"),
        (MultiInstanceMKLClassifier(cv=None), (BAGS, Y[:4]), "cv"),
        (MultiInstanceMKLClassifier(centering="cv"), (BAGS, Y[:4]), "centering"),
        (MultiInstanceMKLClassifier(positive_share=0.0), (BAGS, Y[:4]), "positive_share"),
        (SVM2K(epsilon="none"), (X, Y), "epsilon"),
        (SVM2K(epsilon=-0.1), (X, Y), "epsilon"),
        (ITML(max_iter=None), (PAIRS, np.r_[1, 1, 1, -1, -1, -1]), "max_iter"),
        (ITMLSelect(drop=1.0), (PAIRS, np.r_[1, 1, 1, -1, -1, -1]), "drop"),
        (ITMLSelect(drop=-0.1), (PAIRS, np.r_[1, 1, 1, -1, -1, -1]), "drop"),
    ],
)
def test_an_estimator_says_which_parameter_is_wrong(model, data, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        model.fit(*data)


# -- labels


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.int8, np.uint16, bool, str, list])
def test_labels_mean_the_same_whatever_they_are_written_in(kind):
    numbers = np.array([1, 0, 1, 1, 0, 0, 1])
    y = numbers.tolist() if kind is list else numbers.astype(kind)
    classes, index = encode_labels(y, 7)
    np.testing.assert_array_equal(index, numbers)
    expected = np.unique(np.asarray(y))
    np.testing.assert_array_equal(classes, expected)
    assert classes.dtype == expected.dtype


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_that_are_no_classes_are_refused(bad, dtype):
    y = np.array([0.0, 1.0, bad, 1.0], dtype=dtype)
    with pytest.raises(ValueError, match=r"continuous|NaN|infinity"):
        encode_labels(y, 4)


def test_many_classes_are_warned_of_as_scikit_learn_does():
    y = np.arange(40)
    with pytest.warns(UserWarning, match="classes"):
        check_classification_targets(y)
    with pytest.warns(UserWarning, match="classes"):
        encode_labels(y, 40)


def test_labels_in_a_column_are_taken_and_in_a_table_refused():
    with pytest.warns(Warning, match="column"):
        classes, _ = encode_labels(np.array([[0], [1], [1]]), 3)
    np.testing.assert_array_equal(classes, [0, 1])
    with pytest.raises(ValueError, match=r"1d|shape"):
        encode_labels(np.eye(3), 3)
    with pytest.raises(ValueError, match="labels"):
        encode_labels(np.array([0, 1]), 3)
    with pytest.raises(ValueError):
        encode_labels(np.array([], dtype=int), 0)


# -- what a learner is for


def real_samples():
    X = np.random.default_rng(0).normal(size=(30, 2))
    return X, X[:, 0] + 0.1 * X[:, 1]


@pytest.mark.parametrize("learner", [OneClass(), Fisher(), Hinge(), NuHinge(), SquaredHinge()], ids=repr)
def test_regression_refuses_learners_of_other_tasks(learner):
    X, y = real_samples()
    with pytest.raises(
        IncompatiblePartsError, match="Learners that can: EpsilonInsensitive, Square"
    ) as error:
        MKLRegressor(LINEAR, learner=learner).fit(X, y)
    assert "cannot learn from real targets" in str(error.value)


@pytest.mark.parametrize("kind", [MKLClassifier, FHeuristicClassifier])
def test_classification_refuses_the_learner_without_labels(kind):
    X, y = real_samples()
    match = r"OneClass.* cannot learn from labels of classes: it is for samples without targets.*Hinge"
    with pytest.raises(IncompatiblePartsError, match=match):
        kind(LINEAR, learner=OneClass()).fit(X, y > 0)


@pytest.mark.parametrize("learner", [Square(), EpsilonInsensitive()], ids=repr)
def test_learners_of_regression_tell_classes_apart_too(learner):
    X, y = real_samples()
    assert MKLClassifier(LINEAR, learner=learner).fit(X, y > 0).score(X, y > 0) > 0.9


def test_every_learner_says_what_it_is_for():
    for name in set(learners.__all__) - {"Learner", "InnerSolution", "OneVsRest"}:
        assert set(getattr(learners, name).learns_from) <= {"classes", "real", "none"}


# -- class weights

BANK = KernelBank([Linear(), Gaussian(gamma=0.2)])
FACTORS = {"a": 3.0, "c": 0.2}


def three_classes(n=60):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + y[:, None]
    return X, np.array(["a", "b", "c"])[y]


def cut(values, k=2):
    return np.array_split(values, k)


def obscure(**params):
    return ObscureClassifier(BANK, solver=DualAscent(tol=1e-3), random_state=0, **params)


WAYS = {
    "fit": lambda weight: obscure(class_weight=weight).fit(*three_classes()),
    "the saddle point": lambda weight: MKLClassifier(BANK, class_weight=weight).fit(*three_classes()),
    "a stream": lambda weight: obscure(class_weight=weight).partial_fit(
        *three_classes(), classes=["a", "b", "c"]
    ),
    "partitions": lambda weight: obscure(class_weight=weight, features=RandomFourier(20)).fit_partitions(
        *map(cut, three_classes())
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("weight", "match"),
    [
        ({"a": float("nan")}, "finite and not negative; got nan for the class 'a'"),
        ({"a": float("inf")}, "got inf"),
        ({"b": -1.0}, "got -1.0"),
        ({"b": "heavy"}, "got 'heavy'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "typo": 2.0}, r"names the classes \['typo'\]"),
        ({"typo": 2.0}, r"the classes of y are \['a', 'b', 'c'\]"),
        ("balance", "class_weight must be"),
        ([1.0, 2.0, 3.0], "class_weight must be"),
    ],
)
def test_a_factor_that_cannot_be_meant_is_refused(way, weight, match):
    with pytest.raises(ValueError, match=match):
        WAYS[way](weight)


def test_a_class_may_be_weighed_out_of_a_stream_but_not_out_of_a_fit():
    X, y = three_classes()
    assert obscure(class_weight={"a": 0.0}).partial_fit(X, y, classes=["a", "b", "c"]).n_support_ > 0
    with pytest.raises(ValueError, match=r"weights of classes \['a'\] sum to 0"):
        obscure(class_weight={"a": 0.0}).fit(X, y)


def test_a_streams_class_weights_are_the_same_sample_weights():
    X, y = three_classes()
    names = ["a", "b", "c"]
    weighed = obscure(class_weight=FACTORS).partial_fit(X, y, classes=names)
    weight = np.array([FACTORS.get(label, 1.0) for label in y])
    told = obscure().partial_fit(X, y, classes=names, sample_weight=weight)
    plain = obscure().partial_fit(X, y, classes=names)
    np.testing.assert_allclose(weighed.decision_function(X), told.decision_function(X), atol=1e-12)
    assert abs(weighed.decision_function(X) - plain.decision_function(X)).max() > 1e-2


@pytest.mark.parametrize("weight", [FACTORS, "balanced"])
def test_partitions_weigh_classes_as_a_fit_does(weight):
    X, y = three_classes()
    keep = (y != "c") | (np.arange(60) % 3 == 0)  # so that balancing has something to do
    X, y = X[keep], y[keep]
    model = obscure(class_weight=weight, features=RandomFourier(20))
    whole = model.fit(X, y).bounds_
    parts = model.fit_partitions([X], [y]).bounds_
    plain = obscure(features=RandomFourier(20)).fit(X, y).bounds_
    assert parts.upper == pytest.approx(whole.upper, rel=2e-3)
    assert abs(plain.upper - whole.upper) > 1e-2 * whole.upper
