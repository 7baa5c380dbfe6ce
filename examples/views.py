"""Separate arrays of the same samples: Views slices like one array, so cross-validation just works.

Each digit is seen three ways: its pixels, its profile (ink per row and per column), and pure noise. The
noise is there to be found out.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score

from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.geometry import Simplex, Uniform
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge

N_SAMPLES = 400


def digits():
    data = load_digits()
    images, y = data.images[:N_SAMPLES] / 16.0, data.target[:N_SAMPLES]
    X = Views(
        {
            "pixels": images.reshape(N_SAMPLES, -1),
            "profile": np.hstack([images.sum(axis=1), images.sum(axis=2)]),
            "noise": np.random.default_rng(0).normal(size=(N_SAMPLES, 20)),
        }
    )
    return X, y


def main():
    X, y = digits()
    print(X)
    # No views= here: the bank takes the names of the Views.
    bank = KernelBank.per_view(Gaussian())
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for label, geometry, multiclass in (
        ("average kernel", Uniform(), "shared"),
        ("one set of weights", Simplex(), "shared"),
        ("weights per class", Simplex(), "per_class"),
    ):
        model = MKLClassifier(bank, learner=Hinge(C=10.0), geometry=geometry, multiclass=multiclass, tol=1e-3)
        accuracy = cross_val_score(model, X, y, cv=folds)
        weights = np.atleast_2d(model.fit(X, y).kernel_weights_).mean(axis=0)
        shown = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(X.names, weights, strict=True))
        print(f"{label:<20} accuracy {accuracy.mean():.3f} ± {accuracy.std():.3f}   mean weights: {shown}")


if __name__ == "__main__":
    main()
