"""Few labels, labels of bags, no labels: the same kernels, the same certificate."""

import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import scale

from kernelweave import (
    Bags,
    KernelBank,
    MKLClassifier,
    MKLClusterer,
    MultiInstanceMKLClassifier,
    SemiSupervisedMKLClassifier,
)
from kernelweave.kernels import Gaussian

# Ten labels for 360 threes and eights; -1 marks the rest.
X, digit = load_digits(return_X_y=True)
pair = np.isin(digit, (3, 8))
X, truth = scale(X[pair]), (digit[pair] == 8).astype(int)
told = np.concatenate([np.flatnonzero(truth == c)[:5] for c in (0, 1)])
y = np.full(truth.size, -1)
y[told] = truth[told]
bank = KernelBank.distances(scales=(1.0,))
hidden = y < 0

supervised = MKLClassifier(bank).fit(X[told], y[told])
model = SemiSupervisedMKLClassifier(bank).fit(X, y)
print(f"supervised      {np.mean(supervised.predict(X[hidden]) == truth[hidden]):.3f}")
print(f"semi-supervised {np.mean(model.transduction_[hidden] == truth[hidden]):.3f}")
print(f"{len(model.candidates_)} candidates, {model.stopped_}, relative gap {model.duality_gap_:.1e}")

# Bags of four digits: a bag is positive if there is an eight among its threes.
rng = np.random.default_rng(0)
labels, members = np.arange(40) % 2, []
for positive in labels:
    threes = rng.choice(np.flatnonzero(truth == 0), 4, replace=False)
    if positive:
        threes[0] = rng.choice(np.flatnonzero(truth == 1))
    members.append(threes)
bags = Bags(X[np.concatenate(members)], np.repeat(np.arange(40), 4))
mil = MultiInstanceMKLClassifier(bank)
print(f"bags            {cross_val_score(mil, bags, labels, cv=4).mean():.3f}")
keys = mil.fit(bags, labels).key_instances_[labels == 1]
print(f"key instances that are the eight: {np.mean(keys == 0):.2f}")

# Two moons without labels.
moons, moon = make_moons(120, noise=0.05, random_state=0)
narrow = KernelBank([Gaussian(scale=16.0), Gaussian(scale=64.0)])
clusters = MKLClusterer(narrow, balance=0.5).fit(moons).labels_
print(f"moons           {max(np.mean(clusters == moon), np.mean(clusters != moon)):.3f}")
