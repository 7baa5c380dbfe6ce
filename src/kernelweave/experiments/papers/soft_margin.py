"""Tables I and II and Figure 1 of [Xu13]: seven methods on seven benchmark data sets."""

from __future__ import annotations

from kernelweave.bank import KernelBank
from kernelweave.experiments.comparison import Comparison, Method, Sample
from kernelweave.experiments.experiment import Experiment
from kernelweave.experiments.published import TABLE1, TABLE2
from kernelweave.experiments.views import Bars, Scores, Times
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    LpBall,
    RidgeSimplex,
    Simplex,
    Uniform,
)
from kernelweave.kernels import UnitTrace

C = (0.01, 0.1, 1.0, 10.0, 100.0)
TENTHS = tuple(k / 10 for k in range(1, 11))
METHODS = {
    "AveKernel": Method(Uniform()),
    "SimpleMKL": Method(Simplex()),
    "L2MKL": Method(LpBall(2.0), "p", (2.0,)),
    "LpMKL": Method(LpBall(2.0), "p", (1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 3.0, float("inf"))),
    "SGMKL": Method(ElasticNetBall(0.5), "v", (0.0, *TENTHS)),
    "SM1MKL": Method(BoxSimplex(nu=1.0), "nu", (0.0, *TENTHS)),
    "SM2MKL": Method(RidgeSimplex(1.0), "theta", tuple(10.0**k for k in range(-5, 6))),
}
SAMPLES = (
    Sample("heart", title="Heart"),
    Sample("diabetes", title="Diabetes"),
    Sample("australian", title="Australian"),
    Sample("ionosphere", title="Ionosphere"),
    Sample("ringnorm", 400, title="Ringnorm"),
    Sample("banana", 400, title="Banana"),
    Sample("solar_flare_uci", 666, title="FlareSolar"),
)
TITLES = {sample.dataset: sample.title for sample in SAMPLES} | {"solar_flare_uci": "FlareSolar (stand-in)"}
STUDY = Comparison(
    name="sm-benchmarks",
    samples=SAMPLES,
    methods=METHODS,
    bank=KernelBank.per_feature(scaling=UnitTrace()),
    C=C,
    quick={"dataset": ("heart", "banana"), "split": (0, 1, 2)},
)
DIFFERENCES = (
    "Splits are drawn anew: the paper's are not published. Ringnorm and Banana are 400 samples drawn for "
    "every split from the full sets; the printed accuracies are multiples of 1/120, as of 400 samples.",
    "FlareSolar is the UCI parent of the set the paper used, with another label (19 % positive): its row "
    "cannot be compared with the printed one, only the methods with each other.",
    "Kernels are scaled to trace 1 on the training part. The paper does not say so, but follows SimpleMKL, "
    "which does; without it the average kernel reaches 89 % on Banana and 77 % on Ringnorm (three splits) in "
    "place of the printed 73 and 95.",
    "Models are fitted to a relative duality gap of 1e-3, proved; the paper's stopping rule is not stated.",
    "SGMKL has the squared norm in its constraint, v‖η‖₁ + (1 − v)‖η‖₂² ≤ 1, as its authors do.",
)
EXPERIMENTS = (
    Experiment(
        id="sm-table1",
        title="Accuracy of seven methods on benchmark data sets",
        source="[Xu13], Table I",
        study=STUDY,
        views=(Scores("accuracy", TITLES, tuple(METHODS), TABLE1, baseline="AveKernel"),),
        differences=DIFFERENCES,
    ),
    Experiment(
        id="sm-table2",
        title="Training time of the same methods, as multiples of the average kernel's",
        source="[Xu13], Table II",
        study=STUDY,
        views=(Times("seconds", TITLES, tuple(METHODS), TABLE2, baseline="AveKernel"),),
        differences=(
            "Times are processor seconds of one thread, from the kernels as float64 matrices to the fitted "
            "model, at the parameters that cross-validation chose. Only ratios within a run can be compared.",
            *DIFFERENCES,
        ),
    ),
    Experiment(
        id="sm-fig1",
        title="Number of kernels the same methods select",
        source="[Xu13], Figure 1",
        study=STUDY,
        views=(Bars("kernels", TITLES, tuple(METHODS), label="kernels with a weight"),),
        differences=("Figure 1 is printed without numbers.", *DIFFERENCES),
    ),
)
