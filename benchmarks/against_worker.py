"""One version of kernelweave, run by the interpreter of its environment: it times a cell when asked.

Reads one request a line from standard input, {"cell": [part, ...], "memory": bool}, and writes one line
of JSON. Only public names are used, so that any version can take part.
"""

import json
import multiprocessing
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from resident import raised_megabytes

from kernelweave import KernelBank, MKLClassifier, MKLClassifierCV, path
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge

TOL, JOBS = 1e-3, 2
GEOMETRIES = {"lp p=2": LpBall(2.0), "simplex": Simplex(), "box simplex nu=0.3": BoxSimplex(nu=0.3)}
GIVEN = {"n=538 M=117": (538, 117), "n=2000 M=50": (2000, 50), "n=5000 M=20": (5000, 20)}
SEARCHES = {"n=300 M=24": (300, 8), "n=300 M=48": (300, 16), "n=569 M=48": (569, 16)}
COSTS = (1.0, 100.0)


def cells(parts):
    """Return the cells of the parts asked for: what one fit, search, path or prediction takes."""
    found = []
    if "given" in parts:
        found += [("given", size, C, name) for size in GIVEN for C in COSTS for name in GEOMETRIES]
    if "raw" in parts:
        found += [("raw", "n=2000 M=117", C, name) for C in COSTS for name in GEOMETRIES]
        found += [("raw default", "n=2000", 1.0, "no arguments")]
    if "search" in parts:
        found += [("search", size, 0.0, what) for size in SEARCHES for what in ("search", "path")]
    if "predict" in parts:
        found += [("predict", "2000 rows, n=2000 M=117", 1.0, name) for name in ("lp p=2", "simplex")]
        found += [("predict", "2000 rows, n=2000", 1.0, "no arguments")]
    return found


@cache
def samples(n, d=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)


@cache
def given(size):
    """Return the first kernels of SimpleMKL's bank as matrices; one size is kept at a time."""
    n, M = GIVEN[size]
    X, y = samples(n)
    Ks = []
    for Z in (X, *(X[:, [j]] for j in range(X.shape[1]))):
        G = Z @ Z.T
        D = np.maximum(np.diagonal(G)[:, None] + np.diagonal(G) - 2.0 * G, 0.0)
        np.fill_diagonal(D, 0.0)
        Ks += [np.exp(-D / (2.0 * width**2)) for width in 2.0 ** np.arange(-3, 7)]
        for degree in (1, 2, 3):
            K = (1.0 + G) ** degree
            Ks.append(K / np.diagonal(K).mean())
        if len(Ks) >= M:
            break
    return [np.ascontiguousarray((K + K.T) / 2.0) for K in Ks[:M]], y


@cache
def cancer(n):
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import scale

    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    return scale(X[rows]), y[rows]


def model(C, name):
    if name == "no arguments":
        return MKLClassifier(n_jobs=JOBS)
    how = {"learner": Hinge(C=C), "geometry": GEOMETRIES[name], "tol": TOL, "n_jobs": JOBS}
    return MKLClassifier(KernelBank.per_feature(), **how)


@cache
def fitted(C, name):
    return model(C, name).fit(*samples(2000))


@cache
def call(part, size, C, name):
    """Return the call of a cell, its data made beforehand."""
    if part == "given":
        Ks, y = given(size)
        fit = MKLClassifier(
            "precomputed", learner=Hinge(C=C), geometry=GEOMETRIES[name], tol=TOL, n_jobs=JOBS
        )
        return lambda: fit.fit(Ks, y)
    if part.startswith("raw"):
        X, y = samples(2000)
        one = model(C, name)
        return lambda: one.fit(X, y)
    if part == "predict":
        one, new = fitted(C, name), np.random.default_rng(1).normal(size=(2000, 8))
        return lambda: one.decision_function(new)
    n, widths = SEARCHES[size]
    X, y = cancer(n)
    views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    bank = KernelBank.per_view([Gaussian(scale=s) for s in np.geomspace(1 / 32, 4.0, widths)], views=views)
    thetas = np.geomspace(1.0 / (3 * widths), 1.0, 10).tolist()
    if name == "search":
        costs = np.logspace(-1, 2, 5).tolist()
        search = MKLClassifierCV(bank, learner_values=costs, geometry_values=thetas, cv=5)
        return lambda: search.fit(X, y)
    one = MKLClassifier(bank, learner=Hinge(C=10.0), geometry=BoxSimplex())
    return lambda: path(one, X, y, param="geometry__theta", values=thetas)


def timed(cell):
    run = call(*cell)
    time.sleep(0.02)  # threads of an earlier call may still be busy
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def memory(cell):
    """Return the megabytes a call takes, measured in a child of this process."""
    run = call(*cell)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=lambda: results.put(raised_megabytes(run)))
    process.start()
    process.join()
    return results.get() if process.exitcode == 0 else float("nan")


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("forget"):
            call.cache_clear()
            given.cache_clear()
            result = None
        else:
            result = (memory if request["memory"] else timed)(tuple(request["cell"]))
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
