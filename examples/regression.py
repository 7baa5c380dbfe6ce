"""Regression on the diabetes data: learnt weights against the best single kernel, nested cross-validation."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.preprocessing import scale

from kernelweave import KernelBank, MKLRegressor, MKLRegressorCV
from kernelweave.geometry import LpBall
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import EpsilonInsensitive, Square

X, y = load_diabetes(return_X_y=True)
X, y = scale(X), scale(y)
outer, costs = KFold(3, shuffle=True, random_state=0), [0.1, 1.0]
views = {"body": [0, 1, 2, 3], "blood": slice(4, 10), "all": slice(None)}
kernels = [Linear(), Gaussian(scale=0.25)]
bank = KernelBank.per_view(kernels, views=views)

# Everything is chosen inside the training part of each outer fold.
single = [KernelBank([(view, kernel)], views=views) for view in views for kernel in kernels]
models = {
    "best single kernel": GridSearchCV(
        MKLRegressor(tol=1e-3), {"bank": single, "learner": [Square(C=c) for c in costs]}, cv=3
    ),
    "MKL, ridge, lp ball": MKLRegressorCV(
        bank, geometry=LpBall(2.0), learner_values=costs, geometry_values=[1.0, 2.0, np.inf], cv=3
    ),
    "MKL, epsilon, simplex": MKLRegressor(bank, learner=EpsilonInsensitive(C=0.3, epsilon=0.3)),
}
print("R² in nested cross-validation, mean over 3 folds")
scores = {name: cross_val_score(model, X, y, cv=outer) for name, model in models.items()}
for name, values in scores.items():
    print(f"{name:<22} {values.mean():.3f}")
gain = scores["MKL, ridge, lp ball"] - scores["best single kernel"]
print(f"MKL − best single: {gain.mean():+.3f}, better in {(gain > 0).sum()} of 3 folds")

model = models["MKL, ridge, lp ball"].fit(X, y)
print(f"\nchosen: {model.best_params_}; relative gap {model.duality_gap_:.0e}; weights:")
for name, weight in zip(model.kernel_names_, model.kernel_weights_, strict=True):
    print(f"{name:<26} {weight:.2f}")
