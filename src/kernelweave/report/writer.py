"""`write_report`: from a fitted model and its data to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from kernelweave.bank.protocol import n_rows
from kernelweave.errors import DataError
from kernelweave.explain.contributions import unwrap
from kernelweave.explain.refits import unlabelled_rows
from kernelweave.io import written_whole
from kernelweave.report.baselines import best_estimator
from kernelweave.report.columns import columns_of, lacking_rows, lacking_summary
from kernelweave.report.findings import MethodScores, divisible, gather_findings, require_reportable
from kernelweave.report.held_out import Tick


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | Path,
    *,
    title: str | None = None,
    samples: Sequence[Any] | None = None,
    data: Mapping[str, Any] | None = None,
    cv: int = 5,
    n_resamples: int = 50,
    random_state: Any = 0,
    comparison: MethodScores | None = None,
    notes: Sequence[str] = (),
    begin: Callable[[int], Tick] = lambda _: lambda _: None,
) -> Path:
    """Write one HTML file about a fitted classifier or regressor that opens offline.

    Held-out score against the average kernel, the best single kernel and one kernel of all columns; kernel
    weights with bootstrap intervals and selection frequency; what every view counts and what leaving it out
    costs; the path of the weights along θ (p, v) with a slider; calibration and confusion; the rows the model
    is least certain of, kernel by kernel; the certificate; what was done with every column, and who lacks which view;
    data and versions.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor of kernelweave with a bank, or a pipeline or search that ends in one.
    X, y : the samples it was fitted to.
    path : str or Path
        The file; it is replaced in one step.
    title : str or None, default=None
        Heading of the page.
    samples : sequence or None, default=None
        Names of the rows; None numbers them from 0, or takes the index of a frame.
    data : mapping of text to text or None, default=None
        More lines for the section on data.
    cv : int, default=5
        Folds of the cross-validation.
    n_resamples : int, default=50
        Bootstrap resamples for the intervals of the weights.
    random_state : int, RandomState or None, default=0
        Cuts the folds and draws the resamples.
    comparison : MethodScores or None, default=None
        Scores to show in place of the comparison with the baselines.
    notes : sequence of str, default=()
        Sentences to add to the notes at the end, such as warnings of the fit.
    begin : callable
        Is called with the number of steps; what it returns is called with a name before each.

    Returns
    -------
    Path
        Where the file is.

    Notes
    -----
    The model is refitted about ``cv`` × (5 + views) times and ``n_resamples`` times on stored kernels.
    What a model does not offer is left out, with the reason in its place. The page makes no request, and a
    policy in it forbids any; text of the data is escaped. Needs ``pip install 'kernelweave[report]'``.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import KernelBank, MKLClassifier, write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier(KernelBank.per_view(views={"sepal": [0, 1], "petal": [2, 3]})).fit(X, y)
    >>> file = write_report(model, X, y, pathlib.Path(tempfile.mkdtemp()) / "iris.html", cv=2, n_resamples=3)
    >>> file.stat().st_size < 5_000_000
    True

    """
    require_installed()
    from kernelweave.report.page import render

    require_reportable(model)
    X, y = divisible(best_estimator(unwrap(model)[0]), X), np.asarray(y)
    n = n_rows(X)
    if len(y) != n:
        raise DataError(f"X has {n} rows and y has {len(y)}; a report needs the data of the fit.")
    names = _row_names(X, n) if samples is None else [str(name) for name in samples]
    if len(names) != n:
        raise DataError(f"There are {len(names)} names of samples for {n} rows; give one each.")
    found = gather_findings(
        model,
        X,
        y,
        cv=cv,
        n_resamples=n_resamples,
        random_state=random_state,
        comparison=comparison,
        begin=begin,
    )
    found.notes[:0] = [note for note in notes if note not in found.notes]
    target = _target_lines(y, unlabelled_rows(model, y), is_regressor(model))
    kernel_model, X_kernels = found.kernel_model, unwrap(model, X)[1]
    page = render(
        found,
        columns=columns_of(kernel_model),
        lacking=lacking_summary(lacking_rows(kernel_model.bank, X_kernels), names),
        title=title or f"{type(found.kernel_model).__name__}: what it learnt",
        data={"Rows": str(n), **target, **(data or {})},
        samples=names,
        today=date.today(),
    )
    written_whole(path, page.encode())
    return Path(path)


def require_installed() -> None:
    """Raise ImportError before any work is done if a package that a report needs is missing."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"A report needs {error.name}: pip install 'kernelweave[report]'.") from None


def _row_names(X: Any, n: int) -> list[str]:
    if getattr(X, "ids", None) is not None:  # Views that were joined
        return [str(name) for name in X.ids]
    index = getattr(X, "index", None)
    return [str(k) for k in (index if index is not None and not callable(index) else range(n))]


def _target_lines(y: Any, without_label: Any, regression: bool) -> dict[str, str]:
    """Return the lines about the target in the section on data."""
    if regression:
        return {"Target": f"numbers from {y.min():.4g} to {y.max():.4g}"}
    labels, counts = np.unique(y[~without_label], return_counts=True)
    shown = ", ".join(f"{label} × {count}" for label, count in list(zip(labels, counts, strict=True))[:20])
    unlabelled = {"Without a label": str(without_label.sum())} if without_label.any() else {}
    return {"Classes": shown + (", …" if len(labels) > 20 else ""), **unlabelled}
