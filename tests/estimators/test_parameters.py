"""Numbers, counts and shares are refused before any work, with what would be legal."""

import re

import numpy as np
import pytest

from kernelweave import (
    ITML,
    ITMLSelect,
    LocalizedMKLClassifier,
    MKLClassifier,
    MKLClusterer,
    MultiInstanceMKLClassifier,
    SampleAdaptiveMKLClassifier,
    SemiSupervisedMKLClassifier,
)
from kernelweave.estimators import SVM2K
from kernelweave.estimators.parameters import check_count, check_from_zero, check_number, check_share

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
        (LocalizedMKLClassifier(n_restarts=None), (X, Y), "n_restarts"),
        (LocalizedMKLClassifier(n_restarts=-1), (X, Y), "n_restarts"),
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
