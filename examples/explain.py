"""Why a model says what it says, how sure its weights are, and a file to keep it in."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from kernelweave import KernelBank, MKLClassifier, load, save
from kernelweave.explain import contributions, weight_stability
from kernelweave.kernels import Gaussian

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
model = MKLClassifier(KernelBank.per_view([Gaussian(), Gaussian(scale=4.0)], views=views)).fit(X, y)

said = contributions(model, X)
worst = np.abs(said.decision - model.decision_function(X)).max()
print(f"contributions add up to the decision values within {worst:.0e}")
for view, share in said.by_view().importance().items():
    print(f"{view:<6} moves the decision by {share:.2f} on average")

doubtful = int(np.abs(said.decision).argmin())
parts = dict(zip(said.by_view().names, said.by_view().values[doubtful].round(2).tolist(), strict=True))
print(f"least sure of sample {doubtful}: {parts}, intercept {said.intercept:.2f}")

found = weight_stability(model, X, y, n_resamples=20, random_state=0)
for name, weight, low, high, often in zip(
    found.names, found.weights, found.lower, found.upper, found.frequency, strict=True
):
    print(f"{name:<24} {weight:.2f} [{low:.2f}, {high:.2f}], selected in {often:.0%} of the resamples")

file = Path(tempfile.mkdtemp()) / "cancer.kw"
save(model, file)
print("read back, it says the same:", bool((load(file).predict(X) == model.predict(X)).all()))
