"""What the baselines share: kernel weights by some rule, then one classifier on the combined kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import Vector
from kernelweave.bank import KernelBank
from kernelweave.estimators.calibration import calibrate
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.training import FitResult, FitTask
from kernelweave.estimators.validation import check_choice, check_learner, check_number
from kernelweave.geometry import Geometry, Point, Uniform
from kernelweave.learners import Hinge
from kernelweave.solvers import Solver, WarmStart, solver_with_defaults


@dataclass(eq=False, repr=False)
class BaselineClassifier(MKLClassifier):
    """A classifier with fewer parameters than `MKLClassifier`, whose weights are not learnt with it."""

    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {}
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.default, "learner": Hinge}
    takes_indicators: ClassVar[bool] = False
    dtype = "auto"

    bank: Any = None
    _: KW_ONLY
    learner: Any = None
    tol: float = 1e-4
    class_weight: Any = None
    multiclass: str = "shared"
    probability: bool = False
    memory_limit: float | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        check_learner(self._learner, self.learns_from, self.learner_example)
        check_choice("multiclass", self.multiclass, ("shared", "per_class"))

    @property
    def _geometry(self) -> Geometry:
        return Uniform()

    def _solver(self, n_kernels: int, *, streamed: bool = False) -> Solver:
        return solver_with_defaults(None, self._geometry, n_kernels, self.tol, None, streamed=streamed)


class HoldsSamplesOut(BaselineClassifier):
    """A classifier that holds samples out in its fit, by folds that may know groups."""

    cv: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from samples X and their labels y; ``groups`` are for the splitter."""
        self._check_parameters()
        if self.probability:
            calibrate(self, X, y, sample_weight, groups=groups)
            return self
        return self._fit(X, y, sample_weight, groups)


class TwoStepClassifier(BaselineClassifier):
    """A classifier whose weights follow from a rule (`_weigh`); the second step is certified.

    It is `MKLClassifier` with the geometry `Point(weights)`: the certificate is that of the classifier on the
    combined kernel, since the weights are not optimised there.
    """

    path_params: ClassVar[tuple[str, ...]] = ("learner__",)

    @abstractmethod
    def _weigh(self, task: FitTask) -> list[Vector]:
        """Return the kernel weights of every problem of the task."""

    def _solve(
        self,
        task: FitTask,
        starts: Sequence[WarmStart] | None = None,  # noqa: ARG002 - the weights are given
        stop: Event | None = None,
    ) -> list[FitResult]:
        with blas_threads(threads_for(self.n_jobs)):
            weights = dict(zip(task.targets, self._weigh(task), strict=True))
        return super()._solve(replace(task, data=replace(task.data, extra=weights)), None, stop)

    def _geometry_of(self, task: FitTask, name: str) -> Geometry:
        return Point(task.data.extra[name].tolist())


def of_unit_sum(weights: Vector) -> Vector:
    """Return weights ≥ 0 scaled to sum to one; even ones where all are zero."""
    weights = weights if weights.any() else np.ones(weights.size)
    return np.asarray(weights / weights.sum())
