"""One problem, every weight set: how many kernels are kept, and how much weight goes to noise?

Three views of breast cancer carry the signal; three views of random numbers, as wide, carry none.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    GroupBox,
    LpBall,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    Uniform,
)
from kernelweave.kernels import Gaussian

SCALES = (0.25, 1.0, 4.0)
SIGNAL = ("mean", "error", "worst")
NOISE = ("noise 1", "noise 2", "noise 3")


def data():
    X, y = load_breast_cancer(return_X_y=True)
    tables = dict(zip(SIGNAL, np.hsplit(scale(X), 3), strict=True))
    rng = np.random.default_rng(0)
    return Views(tables | {name: rng.normal(size=(len(y), 10)) for name in NOISE}), y


def main():
    X, y = data()
    bank = KernelBank.per_view([Gaussian(scale=s) for s in SCALES])
    groups = [view for view in X.names for _ in SCALES]  # one label per kernel: its view
    geometries = (
        Uniform(),
        Simplex(),
        BoxSimplex(theta=0.2),
        RidgeSimplex(theta=0.01),
        PowerSimplex(theta=0.01, p=1.5),
        LpBall(p=2.0),
        ElasticNetBall(v=0.5),
        GroupBox(groups=groups, theta=0.5),
    )
    print(f"{len(groups)} kernels\n{'geometry':<16}{'kept':>5}{'noise share':>13}{'machines':>10}{'gap':>10}")
    for geometry in geometries:
        model = MKLClassifier(bank, geometry=geometry).fit(X, y)
        weights = model.kernel_weights_
        noise = sum(w for w, name in zip(weights, model.kernel_names_, strict=True) if "noise" in name)
        print(
            f"{type(geometry).__name__:<16}{np.count_nonzero(weights):>5}{noise / weights.sum():>13.3f}"
            f"{model.n_iter_:>10}{model.duality_gap_:>10.1e}"
        )


if __name__ == "__main__":
    main()
