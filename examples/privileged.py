"""A teacher at training time: SVM+ beside the SVM, and beside a teacher whose notes were shuffled."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from kernelweave import KernelBank, SVMPlusClassifier
from kernelweave.kernels import Gaussian, Linear, UnitMean

rng = np.random.default_rng(0)
digits = load_digits()
keep = np.isin(digits.target, (3, 8))
sharp, y = digits.images[keep] / 16.0, digits.target[keep]  # seen in training only
coarse = sharp.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(y), -1)
X = coarse + 0.2 * rng.normal(size=coarse.shape)  # what the classifier will have to work with
teacher = sharp.reshape(len(y), -1)

order = rng.permutation(len(y))
train, test = order[:60], order[60:]
notes = KernelBank([Linear(), Gaussian()], scaling=UnitMean())

print(f"{'':20}{'accuracy':>9}{'gap':>8}   weights of the privileged kernels")
for name, privileged, wider in [
    ("no teacher: SVM", None, {}),
    ("teacher", teacher[train], {"lam": [0.1, 1.0]}),
    ("teacher, shuffled", teacher[rng.permutation(train)], {"lam": [0.1, 1.0]}),
]:
    model = SVMPlusClassifier(privileged_kernel=notes, tol=1e-3)
    grid = {"C": [0.1, 1.0, 10.0], **wider}
    best = GridSearchCV(model, grid, cv=3).fit(X[train], y[train], privileged=privileged).best_estimator_
    weights = dict(zip(best.privileged_names_, best.privileged_weights_.round(2).tolist(), strict=True))
    print(f"{name:20}{best.score(X[test], y[test]):9.3f}{best.duality_gap_:8.0e}   {weights or ''}")

# Samples the teacher has not seen are rows of NaN: their slacks are their own, as in the SVM.
for share in (0.0, 0.5, 1.0):
    seen = np.arange(len(train))[:, None] < share * len(train)
    given = np.where(seen, teacher[train], np.nan) if share else None
    part = SVMPlusClassifier(privileged_kernel=notes, lam=0.1, tol=1e-3).fit(X[train], y[train], given)
    print(f"the teacher saw {share:4.0%} of the samples: accuracy {part.score(X[test], y[test]):.3f}")
