"""Kernels you computed yourself: one array (rows, training samples, kernels), tuned by GridSearchCV.

scikit-learn's splitters cut rows and columns together, because the estimator says that its input is pairwise.
"""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel, linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import scale

from kernelweave import MKLClassifier
from kernelweave.geometry import BoxSimplex
from kernelweave.learners import Hinge

KERNELS = {
    "linear": lambda A, B: linear_kernel(A, B) / A.shape[1],
    "cosine": cosine_similarity,
    "rbf": rbf_kernel,
    "laplacian": laplacian_kernel,
}


def main():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    train, test = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=0)
    # Rows against training samples, one slice per kernel.
    K_train = np.stack([kernel(X[train], X[train]) for kernel in KERNELS.values()], axis=2)
    K_test = np.stack([kernel(X[test], X[train]) for kernel in KERNELS.values()], axis=2)

    model = MKLClassifier("precomputed", learner=Hinge(), geometry=BoxSimplex(), multiclass="shared")
    grid = {"learner__C": [0.1, 1.0, 10.0], "geometry__theta": [0.25, 0.5, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(K_train, y[train])

    print(f"kernels {K_train.shape}, best {search.best_params_}, cross-validated {search.best_score_:.3f}")
    print(f"test accuracy {search.score(K_test, y[test]):.3f}")
    best = search.best_estimator_
    for name, weight in zip(KERNELS, best.kernel_weights_, strict=True):
        print(f"{name:<10} {weight:.3f}")
    print(f"relative duality gap {best.duality_gap_:.1e} after {best.n_iter_} machines")


if __name__ == "__main__":
    main()
