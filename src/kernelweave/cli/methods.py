"""Makes models by the names of the presets, over kernels of columns that are encoded by their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelweave import presets
from kernelweave.bank import KernelBank
from kernelweave.bank.features import Landmarks
from kernelweave.errors import DataError
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.search import MKLClassifierCV, MKLRegressorCV
from kernelweave.geometry import BoxSimplex, LpBall, Simplex, Uniform
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import Square
from kernelweave.views.tables import near_matches

# Presets whose first parameters are a bank and C, and which classify rows of a table.
WITH_COST = (
    *("simple_mkl", "silp", "sm2_mkl", "lp_mkl", "l2_mkl", "elastic_net_mkl", "average_kernel", "sum_kernel"),
    *("sample_adaptive", "localized_mkl", "obscure", "align", "alignf", "kta", "f_heuristic", "pwmk"),
    "lp_beta",
)
WITHOUT_COST = ("mk_fda", "easy_mkl")
# The estimators as they are, and their searches.
DEFAULT, SEARCHED = "default", "searched"
REGRESSION: dict[str, Callable[[], Any]] = {
    DEFAULT: lambda: None,
    SEARCHED: lambda: None,
    "simple_mkl": Simplex,
    "sm1_mkl": lambda: BoxSimplex(nu=0.5),
    "l2_mkl": lambda: LpBall(2.0),
    "average_kernel": Uniform,
}
# Kernels of every view, by the columns it has; None are the views of the samples.
BANKS: dict[str, Callable[[Mapping[str, Any] | None], Any]] = {
    "by_type": lambda views: KernelBank.by_type(views=views),
    "gaussians": lambda views: KernelBank.per_view(
        [Gaussian(scale=s) for s in (0.25, 1.0, 4.0)], views=views, transform="by_type"
    ),
    "linear": lambda views: KernelBank.per_view([Linear()], views=views, transform="by_type"),
    "distances": lambda views: KernelBank.distances(views=views, transform="by_type"),
}


def method_names(task: str) -> tuple[str, ...]:
    """Return the names of the methods for a task."""
    return (
        tuple(REGRESSION)
        if task == "regression"
        else (DEFAULT, SEARCHED, "sm1_mkl", *WITH_COST, *WITHOUT_COST)
    )


def make_model(
    method: str,
    bank: Any,
    task: str,
    C: float | None,
    verbose: int = 0,
    probability: bool = False,
    landmarks: int | None = None,
) -> Any:
    """Return an unfitted model: the method over the bank.

    C is the cost of an error; None is the default of the method. With ``landmarks``
    kernels are approximated by their values at so many rows; any number of rows can then be learnt from.
    """
    if method not in method_names(task):
        near = near_matches(method, method_names(task))
        raise DataError(f"There is no method {method!r} for {task}; did you mean {near}?")
    if C is not None and not 0.0 < C < float("inf"):
        raise DataError(f"--cost must be a number above 0; got {C:g}.")
    if C is not None and method in WITHOUT_COST and task == "classification":
        raise DataError(f"{method} has no cost C; leave --cost out.")
    if C is not None and method == SEARCHED:
        raise DataError("searched chooses the cost itself; leave --cost out, or name another method.")
    if method == SEARCHED:
        search: Any = MKLRegressorCV if task == "regression" else MKLClassifierCV
        model: Any = search(bank, verbose=verbose)
    elif task == "regression":
        model = MKLRegressor(bank, geometry=REGRESSION[method](), verbose=verbose)
        model.set_params(**({} if method == DEFAULT else {"learner": Square()}))
        model.set_params(**({} if C is None else {"learner__C": C}))
    elif method == DEFAULT:
        model = MKLClassifier(bank, verbose=verbose)
        model.set_params(**({} if C is None else {"learner__C": C}))
    else:
        preset = getattr(presets, method)
        cost = {} if C is None else {"C": C}
        cap = {"nu": 0.5} if method == "sm1_mkl" else {}
        model = preset(bank, **cost, **cap)
        if "verbose" in model.get_params():
            model.set_params(verbose=verbose)
    if probability:
        if "probability" not in model.get_params():
            raise DataError(f"{method} gives no probabilities for {task}; leave --probability out.")
        model.set_params(probability=True)
    if landmarks is not None:
        if landmarks < 1:
            raise DataError(f"--landmarks must be a whole number of at least 1; got {landmarks}.")
        if not can_use_landmarks(model):
            raise DataError(
                f"{method} needs exact kernels; leave --landmarks out, or use --method simple_mkl or l2_mkl."
            )
        model.set_params(features=Landmarks(landmarks), random_state=0)
    return model


def can_use_landmarks(model: Any) -> bool:
    """Return whether a model can learn on landmarks: it has such a parameter, and no solver of its own."""
    params = model.get_params()
    return "features" in params and params.get("solver") is None


def make_bank(kind: str, views: Mapping[str, Sequence[str]] | None, task: str = "classification") -> Any:
    """Return the kernels of a kind on every view; views are names of columns of one table, None those of `Views`.

    The default is what the estimators take without a bank, but numbers are not left as they are.
    """
    groups = None if views is None else {name: list(columns) for name, columns in views.items()}
    if kind == DEFAULT:
        own = (MKLRegressor() if task == "regression" else MKLClassifier()).part("bank")
        return (
            KernelBank.by_type(views=groups)
            if isinstance(own, KernelBank.default)
            else replace(own, views=groups)
        )
    if kind not in BANKS:
        raise DataError(f"There is no bank {kind!r}; there are {DEFAULT}, {', '.join(BANKS)}.")
    return BANKS[kind](groups)
