"""A study small enough for tests."""

import time
from dataclasses import dataclass
from pathlib import Path

from kernelweave.experiments import Experiment
from kernelweave.experiments.views import Bands, Bars, Scores, Times


@dataclass(frozen=True)
class Toy:
    """Two data sets, two methods, some splits; ``marks`` is a folder where every measured cell leaves one."""

    marks: str
    splits: int = 4
    pause: float = 0.0
    name: str = "toy"
    protocol: str = "1"
    datasets: tuple = ()

    def cells(self, quick):
        return [
            {"dataset": dataset, "split": split, "method": method}
            for dataset in ("a", "b")
            for split in range(1 if quick else self.splits)
            for method in ("one", "two", "three")
        ]

    def measure(self, cell, data):  # noqa: ARG002
        time.sleep(self.pause)
        file = Path(self.marks) / f"{cell['dataset']}-{cell['split']}-{cell['method']}"
        with file.open("a") as mark:
            mark.write("x")
        score = 0.5 + 0.1 * len(cell["method"]) + 0.01 * cell["split"] * (1 if cell["method"] == "one" else 2)
        return {"accuracy": score, "seconds": 1.0 + cell["split"], "kernels": len(cell["method"])}


METHODS = ("one", "two", "three")
TITLES = {"a": "Set A", "b": "Set B"}


def toy(marks, **options):
    return Experiment(
        id="toy",
        title="A toy | with a bar",
        source="nowhere",
        study=Toy(str(marks), **options),
        views=(
            Scores("accuracy", TITLES, METHODS, {"a": {"one": (80.0, 1.0)}}, baseline="one"),
            Times("seconds", TITLES, METHODS, {"a": {"one": (1.0, 0.1), "two": (3.0, 0.1)}}, baseline="one"),
            Bars("kernels", TITLES, METHODS, label="letters"),
            Bands("accuracy", METHODS, "split", x_label="split", y_label="accuracy"),
        ),
        differences=("It is <not> in print.",),
    )
