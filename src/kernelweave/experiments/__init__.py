"""The papers' tables and figures, each rerun by one command."""

from kernelweave.experiments.comparison import Comparison, Method, Sample
from kernelweave.experiments.experiment import Experiment, Grid, Study, View
from kernelweave.experiments.registry import experiment, experiments
from kernelweave.experiments.runner import run
from kernelweave.experiments.store import Store

__all__ = [
    "Comparison",
    "Experiment",
    "Grid",
    "Method",
    "Sample",
    "Store",
    "Study",
    "View",
    "experiment",
    "experiments",
    "run",
]
