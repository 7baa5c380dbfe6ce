"""What all estimators share whose fit is one saddle point: learner × geometry × solver over a bank."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.base import KernelEstimator, forget
from kernelweave.estimators.inputs import as_bank, check_input, fit_bank
from kernelweave.estimators.interrupt import interruptible, watching
from kernelweave.estimators.parameters import check_count, check_learner, check_number, check_part
from kernelweave.estimators.progress import gap_bars
from kernelweave.estimators.task import Setting, Solved, Start, Task
from kernelweave.estimators.training import (
    first_guess,
    hold,
    sharpened,
    train,
    warn_if_open,
    with_defaults,
)
from kernelweave.geometry import Geometry
from kernelweave.gram import storage
from kernelweave.solvers import Problem, Progress, Solver


class MKLModel(KernelEstimator):
    """An estimator over a bank that learns weights and a machine together.

    Subclasses say what y means (`_columns`), which problems follow from it (`_problems`), and how predictions
    are made of decision values. They may choose other parts (`_learner`, `_geometry`) than their parameters.
    """

    learner_example: ClassVar[str] = "Hinge(C=1.0)"
    # What y is: "classes", "real" numbers, or "none".
    learns_from: ClassVar[str] = "classes"
    # How parameters begin that leave the stored kernels as they are: one set of matrices serves a whole path.
    walkable: ClassVar[tuple[str, ...]] = ("geometry__", "learner__")

    @abstractmethod
    def _columns(self, y: Any, sample_weight: Any, n_samples: int) -> tuple[Matrix, Vector, AnyArray | None]:
        """Return the targets, one column per machine; the samples' weights; and the classes, if any."""

    def _problems(self, setting: Setting) -> dict[str, AnyArray]:
        """Return one target per problem, by its name; several columns in one target share their weights."""
        Y = setting.columns
        return {"weights": Y if Y.shape[1] > 1 else Y[:, 0]}

    @property
    def _learner(self) -> Any:
        return self.part("learner")

    @property
    def _geometry(self) -> Any:
        return self.part("geometry")

    @property
    def _looks_ahead(self) -> bool:
        """Whether to look for a start on some of the samples: solvers asked for by name have their own."""
        return getattr(self, "solver", None) is None

    def _joint(self, learner: Any) -> Any:
        """Return the learner of several columns that share their weights."""
        return learner.for_columns()

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        forget(self)
        task = self._prepare(X, y, sample_weight)
        solved = self._solve(task)
        self._keep(task, solved)
        warn_if_open([s.result for s in solved], self._solver(task.kernels.n_kernels).tol or self.tol)
        return self

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter, optional=True)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        check_learner(self._learner, self.learns_from, self.learner_example)
        check_part("geometry", self._geometry, Geometry, "Simplex()")
        check_part("solver", self.part("solver"), Solver, "Newton()")

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Task:
        """Check data and parts, and store the kernels: all of a fit but the solving."""
        setting = self._read(X, y, sample_weight)
        self._check_parts(setting)
        return self._store(setting)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Setting:
        """Check the data and fit the bank: what depends on neither the learner nor the geometry."""
        X = check_input(self, X, reset=True)
        bank = self.part("bank")
        fitted = fit_bank(bank, X) if self.accepts_gaps else as_bank(bank).fit(X)
        return Setting(fitted, *self._columns(y, sample_weight, fitted.n_samples))

    def _store(self, setting: Setting, candidates: Sequence[MKLModel] = ()) -> Task:
        """Store the kernels, for this model or for all candidates that will be fitted on them."""
        solvers = [model._solver(len(setting.fitted)) for model in candidates or [self]]
        targets = self._problems(setting)
        kernels = hold(
            setting.fitted,
            centre=self._learner.has_bias,
            tol=self.tol,
            dtype=self.dtype,
            memory_limit=self.memory_limit,
            n_threads=1 if len(targets) > 1 else effective_n_jobs(self.n_jobs),
            for_many=len(candidates) > 1,
            shared=len(targets) > 1,
            lazy=not all(solver.holds_all for solver in solvers),
            defer=not candidates,  # until `train` is done
        )
        return Task(kernels, targets, setting.weight, setting.classes)

    def _solver(self, n_kernels: int) -> Solver:
        return with_defaults(self.solver, self._geometry, n_kernels, self.tol, self.max_iter)

    def _check_parts(self, setting: Setting) -> None:
        for column in setting.columns.T:
            self._learner.check(column, setting.weight)
        self._geometry.check(len(setting.fitted))

    def _adopt(self, other: MKLModel) -> None:
        """Take over what another model learnt of the columns."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def _check(self, setting: Setting) -> None:
        """Check parameters, and parts against a setting."""
        self._check_parameters()
        self._check_parts(setting)

    def _solve(self, task: Task, near: list[Start] | None = None, stop: Event | None = None) -> list[Solved]:
        """Solve every problem of the task, each from its start if given, until done or told to stop."""
        starts = [None] * len(task.targets) if near is None else near
        with gap_bars(self.verbose) as bar, blas_threads(1):
            jobs = [
                partial(self._train, task, y, start, bar(title, self.tol))
                for (title, y), start in zip(task.targets.items(), starts, strict=True)
            ]
            return interruptible(jobs, effective_n_jobs(self.n_jobs), stop)

    def _keep(self, task: Task, solved: list[Solved]) -> None:
        """Set the learnt attributes from a solved task."""
        results = [s.result for s in solved]
        coef = np.column_stack([r.machine.coef for r in results])
        margin = np.concatenate([np.atleast_1d(r.machine.margin) for r in results])
        # A margin of nothing but rounding is no unit to measure decision values in.
        reach = np.array([np.abs(r.machine.coef).sum(axis=0).max() for r in results]).max()
        size = max(float(r.eta @ task.kernels.sizes) for r in results)
        unit = np.where(margin > 1e-10 * reach * size, margin, 1.0)
        unit = unit * np.concatenate(
            [np.broadcast_to(r.machine.scale, r.machine.margin.shape).ravel() for r in results]
        )
        if task.classes is not None:
            self.classes_ = task.classes
        self.bank_ = task.kernels.fitted.for_prediction()
        self.kernel_names_ = task.kernels.names
        self.storage_ = max((s.storage for s in solved), key=lambda used: used.error)
        self.kernel_weights_ = results[0].eta if len(results) == 1 else np.array([r.eta for r in results])
        self.support_ = np.flatnonzero(coef.any(axis=1))
        self.dual_coef_ = (coef[self.support_] / unit).T
        self.intercept_ = np.concatenate([s.intercept for s in solved]) / unit
        self._keep_certificates([r.certificate for r in results])
        self.n_iter_ = max(r.n_iter for r in results)
        histories = [list(r.history) for r in results]
        self.history_ = histories[0] if len(results) == 1 else histories

    def _train(
        self, task: Task, y: AnyArray, near: Start | None, progress: Progress | None, stop: Event
    ) -> Solved:
        """Solve one problem; the intercept is in terms of the kernels as they are, not as they are stored."""
        solver = self._solver(task.kernels.n_kernels)
        learner = self._learner
        if near is not None:
            learner = sharpened(learner, self.tol if solver.tol is None else solver.tol)
        learner = self._joint(learner) if y.ndim == 2 else learner
        problem = Problem(task.kernels, y, learner, self._geometry, task.weight)
        ahead = None
        if near is None and self._looks_ahead:
            try:
                ahead = first_guess(problem, solver, watching(stop, None))
            except KeyboardInterrupt:  # one machine on all samples is still solved, so that there is a model
                stop.set()
        result, used = train(task.kernels, problem, solver, watching(stop, progress), near, ahead)
        if result.stopped == "interrupted":
            stop.set()
        machine = result.machine
        intercept = np.atleast_1d(machine.intercept - used.offset(result.eta, machine.coef))
        return Solved(result, intercept, storage(used.stack), problem=problem)
