"""Multiclass p-norm MKL: certified in one go, by the paper's algorithm, and as a stream in fixed memory."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kernelweave import KernelBank, ObscureClassifier, RandomFourier
from kernelweave.kernels import Gaussian, Linear, UnitMean
from kernelweave.solvers import DualAscent, OnlineBatch

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, stratify=y, random_state=0)
pixels = np.arange(64).reshape(8, 8)
quarters = {f"{a}{b}": pixels[a : a + 4, b : b + 4].ravel() for a in (0, 4) for b in (0, 4)}
bank = KernelBank.per_view([Linear(), Gaussian()], views=quarters, scaling=UnitMean())

print("solver        accuracy  lower bound  objective  support")
for name, solver in (("DualAscent", DualAscent(tol=1e-2)), ("OnlineBatch", OnlineBatch(2, 2))):
    model = ObscureClassifier(bank, C=10.0, p=1.25, solver=solver, random_state=0).fit(X_train, y_train)
    lower, upper = model.bounds_
    print(
        f"{name:12}  {model.score(X_test, y_test):8.3f}  {lower:11.4f}  {upper:9.4f}  {model.n_support_:7d}"
    )

# A stream sees every sample once and keeps nothing but the weights of its features.
stream = ObscureClassifier(bank, p=1.25, features=RandomFourier(200), random_state=0)
for start in range(0, len(y_train), 200):
    part = slice(start, start + 200)
    stream.partial_fit(X_train[part], y_train[part], classes=range(10))
print(f"after one pass of the stream: accuracy {stream.score(X_test, y_test):.3f}")
