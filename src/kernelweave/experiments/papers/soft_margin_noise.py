"""Figure 2 of [Xu13]: Diabetes with more and more columns of noise."""

from __future__ import annotations

from kernelweave.experiments.comparison import Comparison, Sample
from kernelweave.experiments.experiment import Experiment
from kernelweave.experiments.papers.soft_margin import METHODS, STUDY
from kernelweave.experiments.views import Bands

NOISE = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
FIVE = ("AveKernel", "SimpleMKL", "L2MKL", "SM1MKL", "SM2MKL")

EXPERIMENTS = (
    Experiment(
        id="sm-fig2",
        title="Accuracy on Diabetes as columns of noise are added",
        source="[Xu13], Figure 2",
        study=Comparison(
            name="sm-noise",
            samples=(Sample("diabetes"),),
            methods={name: METHODS[name] for name in FIVE},
            bank=STUDY.bank,
            C=STUDY.C,
            noise=NOISE,
            quick={"split": (0, 1), "noise": (0.0, 0.6, 1.2)},
        ),
        views=(
            Bands(
                "accuracy",
                FIVE,
                x="noise",
                x_label="noise columns per original column",
                y_label="accuracy in %",
            ),
        ),
        differences=(
            "The paper shows one split; here are ten, with 95 % intervals of the mean.",
            "The noise is standard Gaussian; the paper says only that it is random.",
            "Kernels are scaled to trace 1, models fitted to a relative gap of 1e-3, as in sm-table1.",
        ),
    ),
)
