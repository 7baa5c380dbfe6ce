"""At their defaults estimators reach the tolerance they have on small, well-known tables."""

import warnings

import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from tests.datasets.data import load_or_skip

from kernelweave import (
    KernelBank,
    LocalizedMKLClassifier,
    MKLClassifier,
    ObscureClassifier,
    SampleAdaptiveMKLClassifier,
    presets,
)
from kernelweave.experiments.common import standardised_views

TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
ESTIMATORS = {
    "MKLClassifier": MKLClassifier,
    "SampleAdaptiveMKLClassifier": SampleAdaptiveMKLClassifier,
    "LocalizedMKLClassifier": LocalizedMKLClassifier,
    "ObscureClassifier": ObscureClassifier,
    "ObscureClassifier, p = 1": lambda bank=None: ObscureClassifier(bank, p=1),
    "presets.obscure": presets.obscure,
}
AT_MOST = 200  # samples: enough to fail, few enough for every run of the tests


def fit_without_convergence_warning(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        return estimator.fit(X, y)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_default_warns_of_non_convergence_on_toy_tables(name, table):
    X, y = TABLES[table](return_X_y=True)
    step = max(1, len(y) // AT_MOST)
    fit_without_convergence_warning(ESTIMATORS[name](), X[::step][:AT_MOST], y[::step][:AT_MOST])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_default_warns_of_non_convergence_on_mfeat(name):
    digits = load_or_skip("mfeat")
    rows = slice(None, None, 10)
    X = standardised_views(digits.X, rows)[rows]
    fit_without_convergence_warning(ESTIMATORS[name](KernelBank.per_view()), X, digits.y[rows])
