"""The demonstration: three natural views of one table, and what learning their weights brings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave._typing import Vector
from kernelweave.bank import KernelBank
from kernelweave.errors import DataError
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.search import MKLClassifierCV
from kernelweave.geometry import BoxSimplex, LpBall, Simplex, Uniform
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge
from kernelweave.report import MethodScores, write_report
from kernelweave.report.writer import require_installed

# The thirty columns are ten measurements of cell nuclei, each as mean, standard error and worst value.
VIEWS = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
SCALES = (0.25, 1.0, 4.0)
COSTS = [0.1, 1.0, 10.0, 100.0]
BAR = 24
OURS = "MKL, nothing named"


@dataclass(frozen=True)
class Score:
    """Test accuracies of one method, one per split, and the largest gap of its certificates."""

    accuracy: Vector
    gap: float
    kernels: float


def run(n_splits: int, console: Console | None = None, report: Path | None = None) -> dict[str, Score]:
    """Compare the methods on the same splits, print the tables, write the report, return the scores."""
    console = console or Console()
    if report is not None:
        require_installed()
        if not report.parent.is_dir():
            raise DataError(f"There is no folder {report.parent} to write {report.name} to; make it first.")
    data = load_breast_cancer()
    X, y = data.data, data.target_names[data.target]
    console.print(
        f"Breast cancer: {X.shape[0]} samples, three views of 10 columns (mean, error, worst); "
        f"{n_splits} random 70/30 splits, C chosen on the training part by cross-validation."
    )
    splits = list(StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0).split(X, y))
    found = {name: _score(model, X, y, splits, name, console) for name, model in methods().items()}
    console.print(_score_table(found))
    chosen = methods()[OURS].fit(X, y)
    last = _kernel_model(chosen)
    console.print(_weight_table(last))
    console.print(
        f"All data: objective in [{last.certificate_.lower:.4f}, {last.certificate_.upper:.4f}], "
        f"relative duality gap {last.duality_gap_:.1e}."
    )
    if report is not None:
        how = f"{n_splits} random 70/30 splits, C chosen by cross-validation inside"
        comparison = MethodScores({name: s.accuracy.tolist() for name, s in found.items()}, 0.3, how, OURS)
        _write(chosen, X, y, report, comparison, console)
    return found


def _write(model: Any, X: Any, y: Any, report: Path, comparison: MethodScores, console: Console) -> None:
    columns = load_breast_cancer().feature_names
    views = {f"View {name}": ", ".join(columns[part]) for name, part in VIEWS.items()}
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:

        def begin(total: int) -> Callable[[str], None]:
            bar = progress.add_task("report", total=total, completed=-1)
            return lambda name: progress.update(bar, description=f"{'report: ' + name:<28}", advance=1)

        place = write_report(
            model,
            X,
            y,
            report,
            notes=[
                "C was chosen on all rows; only the scores against the baselines chose it inside each split."
            ],
            title="Breast cancer: three views of cell nuclei",
            data={"Source": "sklearn.datasets.load_breast_cancer", **views},
            comparison=comparison,
            begin=begin,
        )
    console.print(f"Report: {place.resolve()}", soft_wrap=True, markup=False)


def methods() -> dict[str, Any]:
    """Return the learnt combinations and the baselines, each with C chosen on the training part.

    The first chooses its kernels as well; the others search C by 3-fold cross-validation.
    """
    singles = [
        KernelBank.per_view([Gaussian(scale=s)], views={n: v}) for n, v in VIEWS.items() for s in SCALES
    ]
    return {
        OURS: MKLClassifierCV(KernelBank.prepared(views=VIEWS)),
        "MKL, simplex": _search([_view_bank()], Simplex()),
        "MKL, box simplex (SM1)": _search([_view_bank()], BoxSimplex(nu=0.5)),
        "MKL, l2 ball": _search([_view_bank()], LpBall(2.0)),
        "average kernel": _search([_view_bank()], Uniform()),
        "best single kernel": _search(singles, Uniform()),
        "concatenation, one Gaussian": _search([KernelBank([Gaussian()])], Uniform()),
    }


def _kernel_model(search: Any) -> Any:
    """Return the fitted model of kernels that a search has chosen."""
    best = search.best_estimator_
    return best[-1] if isinstance(best, Pipeline) else best


def _view_bank() -> Any:
    return KernelBank.per_view([Gaussian(scale=s) for s in SCALES], views=VIEWS)


def _search(banks: list[Any], geometry: Any) -> GridSearchCV:
    model = MKLClassifier(banks[0], learner=Hinge(), geometry=geometry, tol=1e-3)
    grid = {"mklclassifier__learner__C": COSTS, "mklclassifier__bank": banks}
    return GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3)


def _score(model: Any, X: Any, y: Any, splits: list[Any], name: str, console: Console) -> Score:
    accuracy, gaps, kernels = [], [], []
    quiet = not console.is_terminal
    for train, test in track(splits, f"{name:<28}", console=console, transient=True, disable=quiet):
        fitted = clone(model).fit(X[train], y[train])
        accuracy.append(fitted.score(X[test], y[test]))
        mkl = _kernel_model(fitted)
        gaps.append(mkl.duality_gap_)
        kernels.append(np.count_nonzero(mkl.kernel_weights_))
    return Score(np.array(accuracy), max(gaps), float(np.mean(kernels)))


def _score_table(scores: dict[str, Score]) -> Table:
    table = Table(title="Test accuracy on the same splits")
    for column, justify in (
        ("method", "left"),
        ("accuracy %", "right"),
        ("kernels used", "right"),
        ("gap ≤", "right"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for name, score in scores.items():
        table.add_row(
            name,
            f"{100 * score.accuracy.mean():.2f} ± {100 * score.accuracy.std(ddof=1):.2f}",
            f"{score.kernels:.1f}",
            f"{score.gap:.0e}",
        )
    return table


def _weight_table(model: MKLClassifier) -> Table:
    table = Table(title=f"Kernel weights by held-out log loss (all data, C = {model.learner.C:g})")
    table.add_column("kernel")
    table.add_column("weight", justify="right")
    table.add_column("")
    for name, weight in zip(model.kernel_names_, model.kernel_weights_, strict=True):
        table.add_row(name, f"{weight:.3f}", "█" * round(BAR * float(weight)))
    return table
