"""Run by the interpreter of the peers' environment: make a data set of himalaya's, or fit it, and print JSON."""

import json
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from himalaya.kernel_ridge import MultipleKernelRidgeCV
from himalaya.utils import generate_multikernel_dataset

# Seconds of computing after which a method is given up.
LIMIT = 150
SOLVERS = {
    "hyper_gradient": {"max_iter": 100, "initial_deltas": "ridgecv"},
    "random_search": {"n_iter": 100, "alphas": np.logspace(-3, 5, 17)},
}


def make(path, options):
    X, Z, Y, T, _, _ = generate_multikernel_dataset(**options)
    np.savez(path, X=X, Z=Z, Y=Y, T=T)
    return {}


def fit(solver, path):
    problem = np.load(path)
    K, L, Y = problem["K"], problem["L"], problem["Y"]
    params = SOLVERS[solver] | {"progress_bar": False}
    model = MultipleKernelRidgeCV(kernels="precomputed", solver=solver, solver_params=params, random_state=0)
    start = time.process_time()
    model.fit(K, Y)
    took = time.process_time() - start
    np.save(path.with_suffix(".out.npy"), model.predict(L))
    return {"seconds": took}


def main():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    task, path, options = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    warnings.simplefilter("ignore")
    print(json.dumps(make(path, options) if task == "make" else fit(task, path)))


main()
