"""Times metric-learn's ITML in its own environment: python metric_worker.py pairs.npz sweeps."""

import json
import sys
import time
import warnings

import numpy as np
from metric_learn import ITML

warnings.simplefilter("ignore")
given = np.load(sys.argv[1])
pairs, y, bounds = given["X"][given["ends"]], given["y"], given["bounds"]


def fit(sweeps: int) -> tuple[float, ITML]:
    model = ITML(max_iter=sweeps, tol=0.0)
    start = time.perf_counter()
    model._fit(pairs, y, bounds=bounds.copy())
    return time.perf_counter() - start, model


sweeps = int(sys.argv[2])
first = fit(1)[0]
full, model = fit(sweeps)
np.save(sys.argv[1] + ".M.npy", model.get_mahalanobis_matrix())
sweep = (full - first) / (sweeps - 1) if sweeps > 1 else full
print(json.dumps({"sweep": sweep, "full": full, "sweeps": sweeps}))
