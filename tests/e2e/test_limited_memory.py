"""Fits in processes whose address space is limited: they stay within it, or refuse in words; none is killed."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ulimit -v has no effect")

# Imports once, and forks for each case: what a case takes, and its limit, end with it.
PROGRAM = """
import json, os, resource, sys
import numpy as np
from kernelweave import FisherMKLClassifier, KernelBank, MKLClassifier, MKLRegressor, OneClassMKL
from kernelweave.kernels import Gaussian

GIGABYTE = 10**9
rng = np.random.default_rng(0)

def table(n, n_classes=2):
    X = rng.normal(size=(n, 2))
    score = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, np.linspace(-1.5, 1.5, n_classes + 1)[1:-1])

def bank():
    return KernelBank([Gaussian(scale=s) for s in (0.5, 1.0, 2.0)])

def fit(model, n, n_classes=2):
    X, y = table(n, n_classes)
    if isinstance(model, MKLRegressor):
        y = X[:, 0] ** 2 + X[:, 1]
    model = model.fit(X) if isinstance(model, OneClassMKL) else model.fit(X, y)
    return float(model.duality_gap_)

def predict():
    X, y = table(600)
    model = MKLClassifier(bank(), tol=1e-2).fit(X, y)
    return len(model.predict(table(200_000)[0]))

CASES = {
    "classifier 2000": lambda: fit(MKLClassifier(tol=1e-2), 2_000),
    "classifier 6000": lambda: fit(MKLClassifier(tol=1e-2), 6_000),
    "regressor 3000": lambda: fit(MKLRegressor(bank(), tol=1e-2), 3_000),
    "fisher 3000": lambda: fit(FisherMKLClassifier(bank(), tol=1e-2), 3_000),
    "fisher 3000, 5 classes": lambda: fit(FisherMKLClassifier(bank(), tol=1e-2), 3_000, 5),
    "one class 3000": lambda: fit(OneClassMKL(bank(), tol=1e-2), 3_000),
    "predictions": predict,
    "classifier 1000000": lambda: fit(MKLClassifier(KernelBank.default(), tol=1e-2), 1_000_000),
}

def limited(case, file):
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + GIGABYTE,) * 2)
    try:
        found = CASES[case]()
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    file.write(json.dumps(found))

found = {}
for case in CASES:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(theirs, "w") as file:
            limited(case, file)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    found[case] = {"status": status, "said": json.loads(said) if said else None}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "case",
    [
        "classifier 2000",
        "classifier 6000",
        "regressor 3000",
        "fisher 3000",
        "fisher 3000, 5 classes",
        "one class 3000",
    ],
)
def test_a_fit_stays_within_a_gigabyte(found, case):
    assert found[case]["status"] == 0
    assert found[case]["said"] <= 1e-2


def test_predictions_stay_within_a_gigabyte(found):
    assert found["predictions"] == {"status": 0, "said": 200_000}


def test_a_million_rows_are_refused_with_what_they_need_and_what_there_is(found):
    case = found["classifier 1000000"]
    assert case["status"] == 0
    assert case["said"].startswith("MemoryError: ")
    for words in ("1000000 samples need", "GB", "MB may be used", "memory_limit"):
        assert words in case["said"]
