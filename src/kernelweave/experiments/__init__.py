"""The papers' tables and figures, each rerun by one command.

``study`` defines studies and experiments and finds them all; ``papers`` has a module per paper;
``comparison`` and ``view_comparison`` are the two general studies, ``common`` is what studies share.
``runner`` measures the cells, ``store`` keeps their records, ``views`` turns records into tables and figures,
and ``render`` writes them to pages.
"""

from kernelweave.experiments.comparison import Comparison, DatasetSample, Method
from kernelweave.experiments.runner import run
from kernelweave.experiments.store import Store
from kernelweave.experiments.study import (
    Experiment,
    ResultTable,
    Study,
    View,
    experiment,
    experiments,
)

__all__ = [
    "Comparison",
    "DatasetSample",
    "Experiment",
    "Method",
    "ResultTable",
    "Store",
    "Study",
    "View",
    "experiment",
    "experiments",
    "run",
]
