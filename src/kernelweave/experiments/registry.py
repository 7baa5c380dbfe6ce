"""All experiments by their id: every module of `kernelweave.experiments.papers` declares some."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache

from kernelweave.errors import DataError
from kernelweave.experiments import papers
from kernelweave.experiments.experiment import Experiment


@cache
def experiments() -> dict[str, Experiment]:
    """Return every experiment under its id, in alphabetical order."""
    found: dict[str, Experiment] = {}
    for module in pkgutil.iter_modules(papers.__path__):
        for experiment in importlib.import_module(f"{papers.__name__}.{module.name}").EXPERIMENTS:
            if experiment.id in found:
                raise RuntimeError(f"Two experiments have the id {experiment.id!r}.")
            found[experiment.id] = experiment
    return dict(sorted(found.items()))


def experiment(name: str) -> Experiment:
    """Return the experiment of an id; DataError names the ones there are."""
    every = experiments()
    if name in every:
        return every[name]
    near = difflib.get_close_matches(name, every, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise DataError(f"There is no experiment {name!r}; there are {', '.join(every)}.{hint}")
