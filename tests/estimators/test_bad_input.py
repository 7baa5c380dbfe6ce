"""Bad input gets one sentence: what was wrong, what was received, what would work."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from kernelweave import Entry, KernelBank, Landmarks, MKLClassifier, MKLRegressor, Views
from kernelweave.bank.precomputed import FittedPrecomputed
from kernelweave.geometry import BoxSimplex, ElasticNetBall, GroupBox, LpBall, PowerSimplex, RidgeSimplex
from kernelweave.kernels import ChiSquared, Gaussian, Linear, Polynomial
from kernelweave.learners import Hinge, NuHinge
from kernelweave.solvers import ReducedGradient

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = np.where(X[:, 0] > 0, 1, 0)
K = X @ X.T
FRAME = pd.DataFrame(X, columns=["age", "bmi", "dose", "risk"])
INDEFINITE = K - 3.0 * np.eye(30)
SIGNS = np.where(Y == 1, 1.0, -1.0)
SNEAKY = np.eye(30) - np.outer(SIGNS, SIGNS) / 15  # one eigenvalue of -1, every 2 x 2 minor positive


def with_entry(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


def fit(X, y=Y, bank=None, **params):
    return MKLClassifier(bank, **params).fit(X, y)


def named(frame, column, value):
    bad = frame.copy()
    bad[column] = value
    return bad


MODEL = MKLClassifier(KernelBank([Linear()])).fit(FRAME, Y)
PRECOMPUTED = MKLClassifier("precomputed").fit([K, K + np.eye(30)], Y)

CASES = {
    "rows of NaN": (lambda: fit(np.full((30, 4), np.nan)), "X has no value in any row"),
    "infinity": (lambda: fit(with_entry(np.inf)), "infinity"),
    "infinity in a named column": (
        lambda: fit(named(FRAME, "bmi", np.inf), bank=KernelBank([Linear()])),
        "bmi",
    ),
    "infinity in a view": (
        lambda: fit(Views({"a": X, "b": with_entry(np.inf)}), bank=KernelBank.per_view()),
        "'b'",
    ),
    "NaN in a kernel": (lambda: fit([K, np.full((30, 30), np.nan)], bank="precomputed"), "Kernel 1"),
    "a column of dicts": (lambda: fit(named(FRAME, "dose", [{}] * 30), bank=KernelBank([Linear()])), "dose"),
    "one class": (lambda: fit(X, np.zeros(30)), r"at least 2 classes, but y has 1 class only: \[0.0\]"),
    "labels that are regression targets": (lambda: fit(X, X[:, 0]), "Unknown label type"),
    "labels of mixed types, of which probabilities are wanted": (
        lambda: fit(X, np.array(["a", 1] * 15, dtype=object), probability=True),
        r"different types, 'a' \(str\) in row 0 and 1 \(number\) in row 1",
    ),
    "labels of mixed types in a list": (
        lambda: fit(X, ["a", 1] * 15),
        r"different types, 'a' \(str\) in row 0 and 1 \(number\) in row 1",
    ),
    "a list of labels with a gap": (
        lambda: fit(X, ["a", float("nan"), "b"] * 10),
        r"y has no label in row 1 \(nan\); leave rows without a label out",
    ),
    "words with a gap": (
        lambda: fit(X, pd.Series(["a", "b"] * 15).where(np.arange(30) != 3)),
        r"y has no label in row 3 \(nan\); leave rows without a label out",
    ),
    "categories with a gap": (
        lambda: fit(X, pd.Series(["a", None] * 15, dtype="category")),
        r"y has no label in row 1",
    ),
    "nullable words with a gap": (
        lambda: fit(X, pd.Series(["a", None] * 15, dtype="string")),
        r"y has no label in row 1",
    ),
    "dates as real targets": (
        lambda: MKLRegressor().fit(X, pd.date_range("2024", periods=30)),
        "y holds dates or times; pass numbers",
    ),
    "dates of a time zone as real targets": (
        lambda: MKLRegressor().fit(X, pd.Series(pd.date_range("2024", periods=30, tz="UTC"))),
        "y holds dates or times; pass numbers",
    ),
    "durations as real targets": (
        lambda: MKLRegressor().fit(X, pd.to_timedelta(range(30), unit="D")),
        "y holds dates or times; pass numbers",
    ),
    "classes of mixed types in a stream": (
        lambda: MKLClassifier(features=Landmarks(5)).partial_fit(
            X, Y, classes=np.array([0, "a"], dtype=object)
        ),
        "classes holds labels of different types",
    ),
    "too many labels": (lambda: fit(X, np.r_[Y, 1]), "30 samples but y has 31 labels|inconsistent"),
    "no labels": (lambda: fit(X, None), "requires y"),
    "1-D samples": (lambda: fit(X[:, 0]), "Expected 2D array|2-D"),
    "no samples": (lambda: fit(X[:0], Y[:0]), r"0 sample\(s\)"),
    "theta below 1/M": (
        lambda: fit(X, bank=KernelBank.distances(), geometry=BoxSimplex(theta=0.01)),
        r"20 kernels needs theta >= 1/20 = 0.05, got theta=0.01",
    ),
    "theta and nu": (lambda: fit(X, geometry=BoxSimplex(theta=0.5, nu=0.5)), "theta or nu"),
    "nu of the box": (lambda: fit(X, geometry=BoxSimplex(nu=1.5)), "0 < nu <= 1, got nu=1.5"),
    "ridge theta": (lambda: fit(X, geometry=RidgeSimplex(theta=0.0)), "theta"),
    "power p": (lambda: fit(X, geometry=PowerSimplex(p=1.0)), "p"),
    "lp below one": (lambda: fit(X, geometry=LpBall(p=0.5)), "p >= 1.*0.5|0.5.*p"),
    "elastic v": (lambda: fit(X, geometry=ElasticNetBall(v=1.5)), "v=1.5"),
    "groups of another length": (lambda: fit(X, geometry=GroupBox(groups=[0, 1, 0])), "2 kernels"),
    "cost": (lambda: fit(X, learner=Hinge(C=-1.0)), "C must be a finite number above 0; got -1.0"),
    "nu of the machine": (lambda: fit(X, learner=NuHinge(nu=0.999)), "at most"),
    "asymmetric kernel": (
        lambda: fit([K + np.triu(np.ones((30, 30)), 1)], bank="precomputed"),
        "Kernel 0.*symmetric",
    ),
    "indefinite kernel": (
        lambda: fit([K, INDEFINITE], bank="precomputed"),
        "Kernel 1.*(semi|definite|diagonal)",
    ),
    "indefinite where no minor shows it": (
        lambda: fit([K, SNEAKY], bank="precomputed"),
        "Kernel 1.*definite",
    ),
    "rectangular kernel": (lambda: fit([K[:20]], bank="precomputed"), "square"),
    "kernels of two sizes": (lambda: fit([K, K[:20, :20]], bank="precomputed"), "same samples"),
    "flat precomputed": (lambda: fit(np.ones(5), bank="precomputed"), "precomputed|Precomputed"),
    "no kernels": (lambda: fit([], bank="precomputed"), "M matrices"),
    "too few new columns": (lambda: PRECOMPUTED.predict([K[:5, :10]] * 2), "30 columns"),
    "too few new kernels": (lambda: PRECOMPUTED.predict([K[:5]]), r"2 kernel\(s\), received 1"),
    "empty views": (lambda: Views({}), "at least one|empty"),
    "views of two lengths": (lambda: Views({"a": X, "b": X[:20]}), "30.*20"),
    "a view that is not there": (
        lambda: fit(Views({"a": X}), bank=KernelBank([Entry(Linear(), view="b")])),
        "'b'",
    ),
    "a view that is gone, for kernels that need it": (
        lambda: MKLRegressor(KernelBank.per_view()).fit({"a": X, "b": X}, X[:, 0]).predict(Views({"a": X})),
        "X has no view 'b', which the bank was fitted with; it has a",
    ),
    "no view of the fit": (
        lambda: fit({"a": X, "b": X}, bank=KernelBank.per_view()).predict({"c": X}),
        "X has no view 'a', which the bank was fitted with; it has c",
    ),
    "a column that is not there": (
        lambda: fit(FRAME, bank=KernelBank([Entry(Linear(), columns=["bim"])])),
        "bim.*bmi",
    ),
    "a column out of range": (lambda: fit(X, bank=KernelBank([Entry(Linear(), columns=9)])), "9"),
    "other columns at prediction": (
        lambda: MODEL.predict(FRAME.rename(columns={"age": "years"})),
        "X lacks the column 'age', which .*, and has the column 'years', which .* was not fitted with; add",
    ),
    "fewer columns at prediction": (
        lambda: MODEL.predict(FRAME.iloc[:, :2]),
        "X lacks the columns 'dose', 'risk', which the model was fitted with; add",
    ),
    "negative features for chi squared": (
        lambda: fit(X, bank=KernelBank([ChiSquared()])),
        "needs features >= 0, received -",
    ),
    "sparse for chi squared": (
        lambda: fit(sparse.csr_matrix(np.abs(X)), bank=KernelBank([ChiSquared()])),
        "sparse",
    ),
    "a kernel that overflows": (
        lambda: fit(1e200 * X, bank=KernelBank([Polynomial(degree=3)])),
        "not finite",
    ),
    "bank by a wrong name": (lambda: fit(X, bank="rbf"), "'precomputed'; got the string 'rbf'"),
    "bank that is a list": (lambda: fit(X, bank=[Gaussian()]), r"KernelBank\(\[kernel, ...\]\)"),
    "tolerance": (lambda: fit(X, tol=0.0), "tol must be a number between 0 and 1; got 0.0"),
    "iterations": (lambda: fit(X, max_iter=0), "max_iter"),
    "a word for a learner": (
        lambda: fit(X, learner="hinge"),
        r"learner must be a Learner such as Hinge\(C=1.0\); got 'hinge'",
    ),
    "a class for a learner": (lambda: fit(X, learner=Hinge), "got the class Hinge"),
    "a learner for a geometry": (lambda: fit(X, geometry=Hinge()), "geometry must be a Geometry"),
    "a word for a solver": (
        lambda: fit(X, solver="newton"),
        r"solver must be a Solver such as Newton\(\); got 'newton'",
    ),
    "text for a number": (lambda: fit(X, tol="small"), "tol must be a number between 0 and 1; got 'small'"),
    "text for a limit": (
        lambda: fit(X, memory_limit="4GB"),
        "memory_limit must be a number above 0 or None; got '4GB'",
    ),
    "a fraction of an iteration": (lambda: fit(X, max_iter=1.5), "whole number of at least 1; got 1.5"),
    "a negative tolerance of the machine": (
        lambda: fit(X, learner=Hinge(tol=-1.0)),
        "tol must be a finite number above 0; got -1.0",
    ),
    "nothing precomputed": (lambda: fit(None, bank="precomputed"), "received NoneType"),
    "a dict of kernels": (lambda: fit({"a": K}, bank="precomputed"), "received dict"),
    "multiclass": (lambda: fit(X, multiclass="ovo"), "'per_class' or 'shared' or 'one_vs_one'; got 'ovo'"),
    "dtype": (lambda: fit(X, dtype="float16"), "float32"),
    "negative weights": (lambda: MKLClassifier().fit(X, Y, sample_weight=-np.ones(30)), "[Nn]egative"),
    "a class without weight": (
        lambda: MKLClassifier().fit(X, Y, sample_weight=(Y == 0).astype(float)),
        r"weights of classes \[1\] sum to 0",
    ),
    "class weights of unknown classes": (lambda: fit(X, class_weight={7: 2.0}), r"names the classes \[7\]"),
    "too few samples to calibrate": (
        lambda: fit(X, np.r_[np.ones(3), np.zeros(27)], probability=True),
        r"smallest class has 3 sample\(s\): give every class 5",
    ),
    "solver and geometry": (
        lambda: fit(X, geometry=LpBall(2.0), solver=ReducedGradient()),
        "Solvers that accept it",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_gets_one_clear_sentence(case):
    call, message = CASES[case]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert len(str(error.value)) > 20


def test_too_little_memory_says_how_much_is_needed():
    with pytest.raises(MemoryError, match=r"need .* but 1 KB may be used: raise memory_limit"):
        MKLClassifier(memory_limit=1000).fit(X, Y)


def test_an_indefinite_kernel_too_large_to_factor_is_named_during_the_fit(monkeypatch):
    monkeypatch.setattr(FittedPrecomputed, "check_definite", FittedPrecomputed.check)
    with pytest.raises(ValueError, match=r"Kernel 'kernel 1' \(number 1\) is not positive semidefinite"):
        MKLClassifier("precomputed", learner=Hinge(C=1e-3), geometry=LpBall(2.0)).fit([K, SNEAKY], Y)
