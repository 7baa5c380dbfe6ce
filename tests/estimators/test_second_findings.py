"""What a review of sample-adaptive, localized and privileged machines found, and must not come back."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import (
    SVM2K,
    KernelBank,
    MKLClassifier,
    SampleAdaptiveMKLClassifier,
    SVMPlusClassifier,
    Views,
)
from kernelweave.kernels import Gaussian, Linear
from kernelweave.plots import SwitchesDisplay
from kernelweave.privileged import svm_2k_problem as svm_2k

BANK = KernelBank([Linear(), Gaussian(width=0.7)])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    return X, np.where(np.where(X[:, 0] < 0, X[:, 1] > 0, (X**2).sum(axis=1) > 1.5), "yes", "no")


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(BANK),
        SVMPlusClassifier(),
        SVM2K(BANK),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_refit_forgets_the_calibration(model, table):
    X, y = table
    model.set_params(probability=True).fit(X, y)
    assert hasattr(model, "calibration_")
    model.set_params(probability=False).fit(X, y)
    assert not hasattr(model, "calibration_")


def test_two_views_say_why_they_stopped(table, monkeypatch):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 is reached"):
        SVM2K(BANK, max_iter=2).fit(*table)
    feasible, calls = svm_2k.TwoViewProgram.feasible, []

    def interrupted(self, x):
        calls.append(x)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return feasible(self, x)

    monkeypatch.setattr(svm_2k.TwoViewProgram, "feasible", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVM2K(BANK).fit(*table)
    assert np.isfinite(model.decision_function(table[0])).all()


def test_two_views_show_their_progress(table, capsys):
    SVM2K(BANK, verbose=2).fit(*table)
    assert "step" in capsys.readouterr().out


def test_privileged_views_may_miss_samples(table):
    X, y = table
    Z = np.column_stack([X + 0.1, X**2])
    Z[::5] = np.nan
    views = Views({"a": Z[:, :2], "b": Z[:, 2:]})
    bank = KernelBank([Gaussian(width=1.0)])
    both = KernelBank.per_view([Linear()])
    named = SVMPlusClassifier(kernel=bank, privileged_kernel=both).fit(X, y, privileged=views)
    slices = KernelBank.per_view([Linear()], views={"a": [0, 1], "b": [2, 3]})
    same = SVMPlusClassifier(kernel=bank, privileged_kernel=slices).fit(X, y, privileged=Z)
    np.testing.assert_allclose(named.decision_function(X), same.decision_function(X), atol=1e-9)
    partly = Views({"a": Z[:, :2], "b": np.nan_to_num(Z[:, 2:])})
    with pytest.raises(ValueError, match=r"10 row.s. of privileged are partly NaN, the first is row 0"):
        SVMPlusClassifier().fit(X, y, privileged=partly)


def test_slacks_are_those_of_their_class(table):
    X, _ = table
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    model = SVMPlusClassifier(lam=0.1).fit(X, labels, privileged=X**2)
    signed = np.where(labels == np.arange(3)[:, None], 1.0, -1.0) * model.decision_function(X).T
    assert (signed >= 1.0 - model.slack_ - 1e-6).all()


def test_parts_that_are_not_used_are_still_checked(table):
    with pytest.raises((TypeError, ValueError), match="privileged_kernel"):
        SVMPlusClassifier(privileged_kernel="bogus").fit(*table)
    with pytest.raises(ValueError, match="privileged must be a kernel matrix"):
        SVMPlusClassifier(privileged_kernel="precomputed").fit(*table, privileged=[])
    model = SampleAdaptiveMKLClassifier(BANK, max_flips=1).fit(*table)
    with pytest.raises(ValueError, match="label must be one of the classes"):
        SwitchesDisplay.from_estimator(model, label="bogus")
