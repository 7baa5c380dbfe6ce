"""A table in three views, and models of it that the tests of the report share."""

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import KernelBank
from kernelweave.kernels import Gaussian, Linear

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 6))
TWO = np.where(X[:, 0] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=80) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + X[:, 2], [-0.7, 0.7])
VIEWS = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
BANK = KernelBank.per_view([Linear(), Gaussian()], views=VIEWS)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def made(bank=BANK, **parts):
    return make_pipeline(StandardScaler(), kw.MKLClassifier(bank, **parts))
