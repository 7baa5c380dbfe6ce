"""Choosing C and the cap θ together: every fold stores its kernels once, and neighbours help each other.

Three views of breast cancer carry the signal, nine of random numbers do not. θ runs from the average kernel,
where noise counts as much as the rest, to the simplex, where a single kernel may take all.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from kernelweave import KernelBank, MKLClassifierCV, Views
from kernelweave.kernels import Gaussian

COSTS = [0.1, 1.0, 10.0, 100.0]


def data():
    X, y = load_breast_cancer(return_X_y=True)
    tables = dict(zip(("mean", "error", "worst"), np.hsplit(scale(X), 3), strict=True))
    rng = np.random.default_rng(0)
    return Views(tables | {f"noise {k}": rng.normal(size=(len(y), 10)) for k in range(9)}), y


def main():
    X, y = data()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    bank = KernelBank.per_view([Gaussian(scale=s) for s in (0.25, 1.0)])

    # The geometry is BoxSimplex() and its values are left to it: five caps from 1/M to 1.
    search = MKLClassifierCV(bank, learner_values=COSTS, scoring="roc_auc", tol=1e-3)
    search.fit(X_train, y_train)

    print("mean AUC     " + "".join(f"  θ={theta:<6.3f}" for theta in search.geometry_values_))
    for C, scores in zip(search.learner_values_, search.mean_score_, strict=True):
        print(f"C = {C:<9g}" + "".join(f"{score:>10.4f}" for score in scores))
    best = ", ".join(f"{name} = {value:.3g}" for name, value in search.best_params_.items())
    print(f"best: {best}; test AUC {search.score(X_test, y_test):.4f}")

    rows = search.cv_results_
    fits, machines, gap = len(rows["fold"]), rows["machines"].sum(), rows["relative_gap"].max()
    print(f"{fits} fits, {machines / fits:.1f} machines each, worst relative gap {gap:.1e}")
    weights = dict(zip(search.kernel_names_, search.kernel_weights_, strict=True))
    for view in ("mean", "error", "worst", "noise"):
        print(f"{view:<6} {sum(weight for name, weight in weights.items() if view in name):.3f}")


if __name__ == "__main__":
    main()
