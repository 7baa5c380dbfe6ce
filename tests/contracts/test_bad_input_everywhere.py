"""Every public estimator × every bad input it can meet: one sentence of kernelweave's own, or the same answer."""

import inspect
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

import kernelweave as kw
from kernelweave.kernels import Gaussian, Linear

pytestmark = pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap", "ignore:.*collinear")

ROOT = Path(kw.__file__).parent
RNG = np.random.default_rng(0)
N = 24
FRAME = pd.DataFrame(RNG.normal(size=(N, 4)), columns=list("abcd"))
TARGET = (FRAME["a"] + FRAME["b"]).to_numpy()
CLASSES = np.where(TARGET > 0, "yes", "no")
PAIRS = RNG.normal(size=(N, 2, 4))
KERNEL = np.eye(N)
BANK = kw.KernelBank([Linear(), Gaussian()])
HALVES = kw.KernelBank([kw.Entry(Linear(), columns=["a", "b"]), kw.Entry(Linear(), columns=["c", "d"])])
SEARCH = {"learner_values": [1.0, 10.0], "geometry_values": [0.5, 1.0], "cv": 2}

# What an estimator learns from (a table and "classes", "numbers" or "nothing"; bags; pairs), and parameters.
ROWS = {
    "AlignedMKLClassifier": ("classes", {"bank": BANK}),
    "EasyMKLClassifier": ("classes", {"bank": BANK}),
    "EvidenceMKLRegressor": ("numbers", {"bank": BANK}),
    "FHeuristicClassifier": ("classes", {"bank": BANK}),
    "FisherMKLClassifier": ("classes", {"bank": BANK}),
    "ITML": ("pairs", {"random_state": 0}),
    "ITMLPlus": ("pairs", {"random_state": 0}),
    "ITMLSelect": ("pairs", {"random_state": 0}),
    "InstanceLabelMKLClassifier": ("bags", {"bank": BANK}),
    "LPBetaClassifier": ("classes", {"bank": BANK, "cv": 2}),
    "LocalizedMKLClassifier": (
        "classes",
        {"bank": BANK, "n_init": 1, "tol": 1e-2, "random_state": 0},
    ),
    "MKLClassifier": ("classes", {"bank": BANK}),
    "MKLClassifierCV": ("classes", {"bank": BANK} | SEARCH),
    "MKLClusterer": ("nothing", {"bank": BANK, "max_rounds": 2}),
    "MKLRegressor": ("numbers", {"bank": BANK}),
    "MKLRegressorCV": ("numbers", {"bank": BANK} | SEARCH),
    "MultiInstanceMKLClassifier": ("bags", {"bank": BANK, "max_rounds": 2}),
    "MultiInstanceMKLClassifierCV": (
        "bags",
        {"bank": BANK, "C": 1.0, "max_rounds": 1, "centering": False, "pooling": "max", "cv": 2},
    ),
    "ObscureClassifier": ("classes", {"bank": BANK, "random_state": 0}),
    "OneClassMKL": ("nothing", {"bank": BANK}),
    "PWMKClassifier": ("classes", {"bank": BANK, "cv": 2}),
    "SVM2K": ("classes", {"bank": HALVES}),
    "SVMPlusClassifier": ("classes", {}),
    "SampleAdaptiveMKLClassifier": ("classes", {"bank": BANK}),
    "SemiSupervisedMKLClassifier": ("classes", {"bank": BANK, "max_rounds": 2}),
    "SetKernelMKLClassifier": ("bags", {"bank": BANK}),
    "SingleInstanceMKLClassifier": ("bags", {"bank": BANK}),
    "SupervisedMetric": ("classes", {"random_state": 0}),
    "WitnessMKLClassifier": ("bags", {"bank": BANK}),
}
TABLES, BAGS, PAIRED = ("classes", "numbers", "nothing"), ("bags",), ("pairs",)
WITH_LABELS = ("classes", "bags", "pairs")


def estimators():
    found = {name: getattr(kw, name) for name in kw.__all__ if inspect.isclass(getattr(kw, name))}
    return {name for name, kind in found.items() if issubclass(kind, BaseEstimator)}


def data(name, table):
    """The samples as this estimator takes them."""
    learns = ROWS[name][0]
    return PAIRS if learns == "pairs" else kw.Bags(table, np.arange(N) // 2) if learns == "bags" else table


def labels(name):
    return {
        "classes": CLASSES,
        "numbers": TARGET,
        "nothing": None,
        "bags": CLASSES[::2],
        "pairs": np.where(TARGET > 0, 1, -1),
    }[ROWS[name][0]]


def fit(name, X=FRAME, y=None, params=None, **other):
    model = getattr(kw, name)(**ROWS[name][1] | (params or {}))
    y = labels(name) if y is None else y
    return model.fit(data(name, X), *([] if y is None else [y]), **other)


def answers(model, name, table):
    X = data(name, table)
    return model.predict(X) if hasattr(model, "predict") else model.transform(X)


def takes(name, word):
    return word in inspect.signature(getattr(kw, name).fit).parameters


def has(name, parameter):
    return parameter in inspect.signature(getattr(kw, name)).parameters


def n_labels(name):
    return N if labels(name) is None else len(labels(name))


def weights(name, value):
    return fit(name, sample_weight=np.where(np.arange(n_labels(name)) == 1, value, 1.0))


def precomputed(name, X):
    bank = {"kernel": "precomputed"} if name == "SVMPlusClassifier" else {"bank": "precomputed"}
    return getattr(kw, name)(**ROWS[name][1] | bank).fit(X, *([] if labels(name) is None else [labels(name)]))


def words(name):
    return np.array(["a", 1] * (n_labels(name) // 2), dtype=object)


def gap_in(name):
    return np.array(["a", "b", None, "a"] * (n_labels(name) // 4), dtype=object)


OF_TABLES = [name for name in ROWS if ROWS[name][0] != "pairs"]
LABELLED = [name for name in ROWS if ROWS[name][0] in WITH_LABELS]
WEIGHTED = [name for name in ROWS if takes(name, "sample_weight")]
WITH_JOBS = [name for name in ROWS if has(name, "n_jobs")]
REGRESSORS = [name for name in ROWS if ROWS[name][0] == "numbers"]
WITH_KERNELS = [name for name in ROWS if has(name, "bank") or has(name, "kernel")]
METRICS = [name for name in ROWS if hasattr(getattr(kw, name), "get_metric")]
DENSE = r"received a sparse csr_matrix of shape \(24, 24\); pass K.toarray\(\)|not kernel values|do not have"
RANGE = r"have to be between 1e-100 and 1e\+100 in size: multiply all of them by one factor"

# Bad input: who can meet it, what they are asked to do, what they say.
CASES = {
    "columns of one name": (
        OF_TABLES,
        lambda name: fit(name, FRAME.set_axis(list("abbd"), axis=1)),
        r"several columns named 'b'; give every column a name of its own",
    ),
    "labels of mixed types": (
        LABELLED,
        lambda name: fit(name, y=words(name)),
        r"different types, 'a' \(str\) in row 0 and 1 \(number\) in row 1; make all of them text, with y.astype",
    ),
    "a sample without label": (
        LABELLED,
        lambda name: fit(name, y=gap_in(name)),
        r"y has no label in row 2 \(None\); leave rows without a label out",
    ),
    "targets that are words": (
        REGRESSORS,
        lambda name: fit(name, y=np.array(["1.5", "x"] * (N // 2), dtype=object)),
        "The target of sample 1 is 'x', which is no number; pass numbers, or take a classifier",
    ),
    "targets that are dates": (
        REGRESSORS,
        lambda name: fit(name, y=pd.date_range("2024", periods=N)),
        "y holds dates or times; pass numbers",
    ),
    "targets of 1e300": (REGRESSORS, lambda name: fit(name, y=1e300 * TARGET), RANGE),
    "targets of 1e-300": (REGRESSORS, lambda name: fit(name, y=1e-300 * TARGET), RANGE),
    "labels of 1e300": (
        [name for name in LABELLED if ROWS[name][0] != "pairs"],
        lambda name: fit(name, y=np.linspace(-1e300, 1e300, n_labels(name))),
        "Unknown label type: continuous",
    ),
    "labels of pairs of 1e300": (
        [name for name in LABELLED if ROWS[name][0] == "pairs"],
        lambda name: fit(name, y=1e300 * labels(name)),
        r"y must be \+1 for similar and -1 for dissimilar pairs; got the values",
    ),
    "weights of 1e300": (
        WEIGHTED,
        lambda name: weights(name, 1e300),
        f"weight of sample 1 is 1e.300; .*{RANGE}",
    ),
    "weights of 1e-300": (
        WEIGHTED,
        lambda name: weights(name, 1e-300),
        f"weight of sample 1 is 1e-300; .*{RANGE}",
    ),
    "n_jobs=0": (WITH_JOBS, lambda name: fit(name, params={"n_jobs": 0}), "n_jobs must be .*got 0"),
    "n_jobs in words": (
        WITH_JOBS,
        lambda name: fit(name, params={"n_jobs": "two"}),
        "n_jobs must be .*got 'two'",
    ),
    "half a job": (WITH_JOBS, lambda name: fit(name, params={"n_jobs": 1.5}), "n_jobs must be .*got 1.5"),
    "sparse precomputed kernels": (
        WITH_KERNELS,
        lambda name: precomputed(name, [sparse.csr_matrix(KERNEL)] * 2),
        DENSE,
    ),
    "one sparse precomputed kernel": (
        WITH_KERNELS,
        lambda name: precomputed(name, sparse.csr_matrix(KERNEL)),
        DENSE,
    ),
    "a block for a metric of two points": (
        METRICS,
        lambda name: fit(name).get_metric()(PAIRS[:, 0], PAIRS[0, 1]),
        r"two points of 4 features, received arrays of shape \(24, 4\) and \(4,\); for many pairs use pair_distance",
    ),
    "a column that is gone": (
        OF_TABLES,
        lambda name: answers(fit(name), name, FRAME.drop(columns="c")),
        "X lacks the column 'c', which the model was fitted with; add such columns, empty",
    ),
    "a column that is new": (
        OF_TABLES,
        lambda name: answers(fit(name), name, FRAME.assign(e=1.0)),
        r"X has the column 'e', which the model was not fitted with; pass X\[model.feature_names_in_\]",
    ),
    "words where numbers were": (
        OF_TABLES,
        lambda name: answers(fit(name), name, FRAME.assign(b="old")),
        r"Column 'b' of X (held numbers when .* holds words now .'old' in row 0.; pass numbers|is not numeric)",
    ),
    "fewer columns without names": (
        OF_TABLES,
        lambda name: answers(
            fit(name, FRAME.to_numpy(), params=nameless(name)), name, FRAME.to_numpy()[:, :3]
        ),
        "X has 3 features, but .* is expecting 4 features",
    ),
}


def nameless(name):
    columns = [kw.Entry(Linear(), columns=[0, 1]), kw.Entry(Linear(), columns=[2, 3])]
    return {"bank": kw.KernelBank(columns)} if name == "SVM2K" else {}


def test_every_public_estimator_has_a_row_and_meets_some_bad_input():
    assert set(ROWS) == estimators()
    assert {name for names, *_ in CASES.values() for name in names} == set(ROWS)
    assert all(names for names, *_ in CASES.values())


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for case, (names, *_) in CASES.items() for name in names]
)
def test_bad_input_gets_one_sentence(name, case):
    _, call, message = CASES[case]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call(name)
    assert "\n" not in str(error.value)
    raised_in = Path(traceback.extract_tb(error.value.__traceback__)[-1].filename)
    assert ROOT in raised_in.parents or "sklearn" in raised_in.parts


@pytest.mark.parametrize("name", OF_TABLES)
def test_the_order_of_columns_at_prediction_does_not_matter(name):
    model = fit(name)
    np.testing.assert_array_equal(answers(model, name, FRAME[list("dbca")]), answers(model, name, FRAME))


@pytest.mark.parametrize("name", [name for name in OF_TABLES if name != "SVM2K"])  # its bank names columns
def test_columns_whose_labels_are_numbers_are_told_apart_by_them(name):
    numbered = FRAME.set_axis([7, 3, 5, 9], axis=1)
    model = fit(name, numbered)
    expected = answers(model, name, numbered)
    np.testing.assert_array_equal(answers(model, name, numbered[[5, 9, 7, 3]]), expected)
    with pytest.raises(
        ValueError, match="X lacks the column 5, which the model was fitted with, and has the column 4"
    ):
        answers(model, name, numbered.rename(columns={5: 4}))
