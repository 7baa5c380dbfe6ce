"""How often bootstrap intervals of kernel weights hold the weights of a far larger sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank import KernelBank
from kernelweave.estimators import MKLClassifier
from kernelweave.experiments.store import Cell
from kernelweave.experiments.study import Experiment, all_cells, fingerprint
from kernelweave.experiments.views import Means
from kernelweave.explain import weight_stability
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge

SIZES, SPLITS, RESAMPLES, LARGER, C = (75, 150, 300), 40, 60, 20, 1.0
INFORMATIVE, NOISE = 2, 4
METHOD = "percentiles"


def draw_samples(n: int, rng: np.random.Generator) -> tuple[Matrix, AnyArray]:
    """Return samples of six views of two columns, of which the first two carry the class."""
    X = rng.normal(size=(n, 2 * (INFORMATIVE + NOISE)))
    signal = X[:, 0] + X[:, 1] + 0.8 * (X[:, 2] + X[:, 3])
    return X, np.where(signal + rng.normal(size=n) > 0.0, 1, -1)


@dataclass(frozen=True)
class IntervalsStudy:
    """Shares of the intervals of one data set that hold the weights of a sample twenty times as large."""

    name: str = "weight-intervals"
    datasets: tuple[str, ...] = ()

    @property
    def protocol(self) -> str:
        return fingerprint(RESAMPLES, LARGER, C, INFORMATIVE, NOISE)

    def cells(self, quick: bool) -> list[Cell]:
        """Return one cell per size and data set."""
        sizes, splits = (SIZES[:1], 2) if quick else (SIZES, SPLITS)
        return all_cells(n=sizes, split=range(splits), method=(METHOD,))

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:  # noqa: ARG002 - simulated
        rng = np.random.default_rng([63, cell["n"], cell["split"]])
        X, y = draw_samples(cell["n"], rng)
        found = weight_stability(simple_mkl(C), X, y, n_resamples=RESAMPLES, random_state=cell["split"])
        # The price of an error shrinks with the number of errors, so that the problem stays the same.
        goal = simple_mkl(C / LARGER).fit(*draw_samples(LARGER * cell["n"], rng)).kernel_weights_
        held = (found.lower <= goal + 1e-9) & (goal <= found.upper + 1e-9)
        frequency = found.frequency
        return {
            "informative": float(held[:INFORMATIVE].mean()),
            "noise": float(held[INFORMATIVE:].mean()),
            "separated": float(frequency[:INFORMATIVE].min() > frequency[INFORMATIVE:].max()),
        }


def simple_mkl(cost: float) -> MKLClassifier:
    """Return SimpleMKL over one Gaussian of each view."""
    views = {f"view {m}": [2 * m, 2 * m + 1] for m in range(INFORMATIVE + NOISE)}
    return MKLClassifier(KernelBank.per_view(Gaussian(), views=views), learner=Hinge(C=cost))


ROWS = {n: f"{n} samples" for n in SIZES}
EXPERIMENTS = (
    Experiment(
        id="weight-intervals",
        title="Do 95 % bootstrap intervals hold the weights of a sample twenty times as large?",
        source="in no paper",
        study=IntervalsStudy(),
        views=tuple(
            Means(measure, ROWS, (METHOD,), {}, row_key="n", title=title)
            for measure, title in (
                ("informative", "Intervals of the two informative kernels that do, in %"),
                ("noise", "Intervals of the four noise kernels that do, in %"),
                (
                    "separated",
                    "Data sets where both informative kernels are selected more often than any noise, in %",
                ),
            )
        ),
        differences=(
            "A simulation of our own: two of six views tell the class, SimpleMKL, C = 1 (and C / 20 for the "
            "large sample), 60 resamples.",
            "Weights lie on the border of the simplex, where resampling is known to miss: noise takes some "
            "weight in a small sample, which it takes from the kernels that matter.",
        ),
    ),
)
