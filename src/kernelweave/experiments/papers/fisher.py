"""The Fisher discriminants of [Yan09]: simulated weak views (Figures 2, 3), random kernels (Figures 4, 5)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank import KernelBank, Views
from kernelweave.datasets import Dataset, load, overlapping_gaussians
from kernelweave.estimators import FisherMKLClassifier, MKLClassifier
from kernelweave.experiments.common import standardised_views
from kernelweave.experiments.store import Cell
from kernelweave.experiments.study import Experiment, all_cells, fingerprint
from kernelweave.experiments.views import Bands, Weights
from kernelweave.experiments.views.figures import weight_measures
from kernelweave.geometry import Uniform
from kernelweave.kernels import Gaussian, UnitTrace
from kernelweave.learners import Fisher
from kernelweave.solvers import CuttingPlane

REG = 1e-4
NORMS = {"l1": 1.0, "l2": 2.0}
METHODS = ("l1", "l2", "uniform")


def discriminant(method: str, bank: Any, tol: float, **params: Any) -> Any:
    """Return the discriminant with weights learnt in a norm, or with equal weights."""
    if method == "uniform":
        return MKLClassifier(bank, learner=Fisher(REG), geometry=Uniform(), tol=tol)
    return FisherMKLClassifier(bank, p=NORMS[method], reg=REG, tol=tol, **params)


def simulated(cell: Cell) -> Dataset:
    """Return the samples of a cell of the simulation, the same for every method."""
    return overlapping_gaussians(cell["kernels"], random_state=1000 * cell["kernels"] + cell["split"])


@dataclass(frozen=True)
class SimulationStudy:
    """Test error and weights by number of kernels, repetition and method; one Gaussian kernel per view."""

    name: str = "fda-simulation"
    datasets: tuple[str, ...] = ()
    repetitions: int = 100
    width: float = 0.3
    tol: float = 1e-5

    @property
    def protocol(self) -> str:
        return fingerprint(self.width, REG, self.tol, METHODS)

    def cells(self, quick: bool) -> list[Cell]:
        """Return one cell per number of kernels, repetition and method; quick, ten repetitions of four."""
        sizes, repetitions = ((5, 20, 30, 50), 10) if quick else (range(5, 55, 5), self.repetitions)
        return all_cells(kernels=sizes, split=range(repetitions), method=METHODS)

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:  # noqa: ARG002 - it is drawn
        sample = simulated(cell)
        bank = KernelBank.per_view(Gaussian(width=self.width))
        fitted = discriminant(cell["method"], bank, self.tol).fit(sample.X, sample.y)
        accuracy = fitted.score(sample.extra["X_test"], sample.extra["y_test"])
        return {
            "error": 1.0 - float(accuracy),
            "kernels_in_use": int(np.count_nonzero(fitted.kernel_weights_)),
            "relative_gap": float(fitted.duality_gap_),
            **(weight_measures(fitted.kernel_weights_) if cell["split"] == 0 else {}),
        }


@dataclass(frozen=True)
class RoundsStudy:
    """Inner problems solved to the paper's tolerance, by number of kernels, repetition, norm and solver."""

    name: str = "fda-rounds"
    datasets: tuple[str, ...] = ()
    repetitions: int = 10
    width: float = 0.3
    tol: float = 5e-4

    @property
    def protocol(self) -> str:
        return fingerprint(self.width, REG, self.tol)

    def cells(self, quick: bool) -> list[Cell]:
        """Return one cell per number of kernels, repetition, norm and solver."""
        sizes, repetitions = ((5, 30), 2) if quick else ((5, 10, 20, 30, 50), self.repetitions)
        methods = [f"{norm}, {solver}" for norm in NORMS for solver in ("column generation", "Newton")]
        return all_cells(kernels=sizes, split=range(repetitions), method=methods)

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:  # noqa: ARG002 - it is drawn
        norm, _, name = cell["method"].partition(", ")
        sample = simulated(cell)
        bank = KernelBank.per_view(Gaussian(width=self.width))
        solver = CuttingPlane() if name == "column generation" else None
        fitted = discriminant(norm, bank, self.tol, solver=solver).fit(sample.X, sample.y)
        return {"machines": int(fitted.n_iter_), "relative_gap": float(fitted.duality_gap_)}


@dataclass(frozen=True)
class NoiseStudy:
    """Mean average precision over the ten digits, each against the rest, by number of informative kernels.

    There are 30 kernels, of which some are informative: Gaussians at ``scales`` on each of six views.
    """

    name: str = "fda-noise"
    datasets: tuple[str, ...] = ("mfeat",)
    splits: int = 5
    n_kernels: int = 30
    n_train: int = 200
    n_test: int = 1000
    scales: tuple[float, ...] = (0.0625, 0.25, 1.0, 4.0, 16.0)
    tol: float = 1e-4

    @property
    def protocol(self) -> str:
        return fingerprint(REG, self.tol, self.n_kernels, self.n_train, self.n_test, self.scales, METHODS)

    def cells(self, quick: bool) -> list[Cell]:
        """Return one cell per number of informative kernels, split and method."""
        levels, splits = ((0, 3, 6, 15, 24, 30), 1) if quick else (range(0, 31, 3), self.splits)
        return all_cells(informative=levels, split=range(splits), method=METHODS)

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:
        grams, crossed, y, y_test = self.kernels(cell, data)
        model = discriminant(cell["method"], "precomputed", self.tol)
        values = model.fit(grams, y).decision_function(crossed)
        precision = [
            average_precision_score(y_test == label, values[:, c]) for c, label in enumerate(model.classes_)
        ]
        eta = np.atleast_2d(model.kernel_weights_)
        informative = cell["informative"]
        return {
            "map": float(np.mean(precision)),
            "share_of_random": float((eta[:, informative:].sum(axis=1) / eta.sum(axis=1)).mean()),
            "kernels_in_use": float(np.count_nonzero(eta, axis=1).mean()),
            "relative_gap": float(model.duality_gap_),
            **(weight_measures(eta[0]) if cell["split"] == 0 else {}),
        }

    def kernels(
        self, cell: Cell, data: str | Path | None
    ) -> tuple[list[Matrix], list[Matrix], AnyArray, AnyArray]:
        """Return training and test kernels, the informative ones first, and the labels of both parts.

        Which informative kernels stay is drawn once per split, so that levels are nested. A random kernel is
        a Gaussian of 10 columns of noise.
        """
        digits = load("mfeat", data)
        rng = np.random.default_rng([41, cell["split"]])
        order = rng.permutation(len(digits.y))
        train, test = order[: self.n_train], order[self.n_train : self.n_train + self.n_test]
        informative = rng.permutation(self.n_kernels)[: cell["informative"]]
        noise = {f"noise{m}": rng.standard_normal((len(digits.y), 10)) for m in range(self.n_kernels)}
        gaussians = [Gaussian(scale=scale) for scale in self.scales]
        blocks = [
            (KernelBank.per_view(gaussians, scaling=UnitTrace()), standardised_views(digits.X, train)),
            (KernelBank.per_view(Gaussian(), scaling=UnitTrace()), Views(noise)),
        ]
        grams: list[Matrix] = []
        crossed: list[Matrix] = []
        chosen = (informative, np.arange(cell["informative"], self.n_kernels))
        for (bank, samples), which in zip(blocks, chosen, strict=True):
            if not which.size:
                continue
            fitted = bank.fit(samples[train])
            every = list(fitted.grams())
            rows = dict(fitted.cross(samples[test], which=np.sort(which)))
            grams += [every[m] for m in which]
            crossed += [rows[int(m)] for m in which]
        return grams, crossed, digits.y[train], digits.y[test]


SIMULATION_DIFFERENCES = (
    "The paper leaves the covariances and the width open. Here the covariance of every class and view is "
    "AA' + I with standard normal A, and σ = 0.3, which give its error of 0.43 for a single kernel.",
    "λ = 1e-4 is the value the paper uses on its images; the simulation's is not stated. The threshold, on "
    "which it is silent, is the midpoint of the projected class means.",
    "Uniform weights are shown too; the paper has them only for its images. Here they do as well as l2, "
    "which the paper's argument does not lead one to expect.",
    "Means and 95 % intervals of the mean over the repetitions; the paper draws standard deviations.",
)
NOISE_DIFFERENCES = (
    "The paper's images (VOC 2008) are replaced by the six views of the Multiple Features digits: five "
    "Gaussian kernels of different width on each view are the 30 informative ones; 200 samples to learn "
    "from, 1,000 to test on, five splits. The digits are far easier: "
    "the paper's mean average precisions are 0.46 at best.",
    "λ = 1e-4 and unit trace as in the paper; every third noise level of its 31.",
)
EXPERIMENTS = (
    Experiment(
        id="fda-fig2",
        title="Test error of l1 and l2 Fisher discriminants as kernels are added",
        source="[Yan09], Figure 2",
        study=SimulationStudy(),
        views=(Bands("error", METHODS, "kernels", "number of kernels", "test error in %"),),
        differences=SIMULATION_DIFFERENCES,
    ),
    Experiment(
        id="fda-fig3",
        title="Weights learnt with 5 and with 30 kernels",
        source="[Yan09], Figure 3",
        study=SimulationStudy(),
        views=(
            Weights("kernels", (5, 30), ("l1", "l2"), "number of kernels"),
            Bands(
                "kernels_in_use", ("l1", "l2"), "kernels", "number of kernels", "kernels in use", scale=1.0
            ),
        ),
        differences=SIMULATION_DIFFERENCES,
    ),
    Experiment(
        id="fda-rounds",
        title="Machines solved to a relative gap of 5e-4",
        source="[Yan09], Sec. IV-B.3",
        study=RoundsStudy(),
        views=(
            Bands(
                "machines",
                ("l1, column generation", "l2, column generation", "l1, Newton", "l2, Newton"),
                "kernels",
                "number of kernels",
                "machines",
                scale=1.0,
            ),
        ),
        differences=(
            "The paper reports a few tens of rounds for l1 and fewer than 5 for l2, on images with 30 "
            "kernels; here are its simulated kernels.",
            "Rounds are counted to a proved relative gap of 5e-4; the paper's rule compares the master's "
            "value with the last machine's and proves nothing.",
        ),
    ),
    Experiment(
        id="fda-fig4",
        title="Weights of informative and of random kernels",
        source="[Yan09], Figure 4",
        study=NoiseStudy(),
        views=(
            Weights("informative", (6, 15, 24), ("l1", "l2"), "informative kernels of 30, which come first"),
            Bands(
                "share_of_random",
                METHODS,
                "informative",
                "informative kernels of 30",
                "weight on random kernels in %",
            ),
        ),
        differences=("The weights are those of the digit 0 against the rest.", *NOISE_DIFFERENCES),
    ),
    Experiment(
        id="fda-fig5",
        title="Mean average precision as random kernels give way to informative ones",
        source="[Yan09], Figure 5",
        study=NoiseStudy(),
        views=(
            Bands("map", METHODS, "informative", "informative kernels of 30", "mean average precision in %"),
        ),
        differences=NOISE_DIFFERENCES,
    ),
)
