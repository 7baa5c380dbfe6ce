"""OBSCURE as an estimator: multiclass p-norm MKL by `fit`, in batches, or on partitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import joblib
import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.bank.features import Features
from kernelweave.bank.protocol import FittedKernels
from kernelweave.estimators.base import KernelEstimator, predicted_classes, reset
from kernelweave.estimators.column_notes import note_columns
from kernelweave.estimators.learnt_kernel import KernelFeatures
from kernelweave.estimators.progress import gap_bars
from kernelweave.estimators.training import warn_of_gap
from kernelweave.estimators.validation import (
    as_bank,
    check_count,
    check_input,
    check_number,
    check_part,
    class_factors,
    encode_labels,
    is_precomputed,
    labels_among,
    named_classes,
    require_same_rows,
    sample_weights,
)
from kernelweave.gram import SolverSize, StoragePolicy, build_gram_stack
from kernelweave.gram.memory import require_room
from kernelweave.multiclass.checkpoint import Checkpoint, as_checkpoint
from kernelweave.multiclass.crammer_singer import solve_on_simplex
from kernelweave.multiclass.dual_ascent import DualAscent
from kernelweave.multiclass.partitioned_ascent import solve_partitioned
from kernelweave.multiclass.partitions import PartitionedData, PartitionReader
from kernelweave.multiclass.problem import PNormProblem, PNormResult, PNormSolver
from kernelweave.multiclass.rows import FeatureRows, KernelRows, build_kernel_rows, check_diagonals
from kernelweave.multiclass.stream import (
    FeatureScorer,
    FeatureStream,
    KernelScorer,
    KernelStream,
    OnlineRule,
    update_stream,
)
from kernelweave.solvers import Certificate
from kernelweave.solvers.problem import Record


class OptimumBounds(NamedTuple):
    """lower ≤ optimum ≤ upper."""

    lower: float
    upper: float


class ObscureClassifier(ClassifierMixin, KernelFeatures, KernelEstimator):  # type: ignore[misc]
    r"""Multiclass p-norm multiple kernel learning without intercept, with bounds of its optimum.

    .. math:: \min_w \tfrac{\lambda}{2} \|\bar w\|_{2,p}^2 + \tfrac1N \sum_i
       \max_{c \ne y_i} [1 - \bar w \cdot (\bar\phi(x_i, y_i) - \bar\phi(x_i, c))]_+, \qquad \lambda = 1/(CN)

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.default()`. The paper wants k(x, x) ≤ 1, see `UnitDiagonal`.
    C : float, default=1.0
        Price of a margin violation, λ = 1/(CN).
    p : float in [1, 2], default=1.5
        Norm over the kernels: 1 selects a few, 2 is the plain sum of kernels. With 1 a matrix of all samples is held.
    solver : DualAscent, OnlineBatch, Pegasos or None, default=None
        None is ``DualAscent()``, to a gap of 1e-3; ``OnlineBatch`` is the paper's algorithm, ``Pegasos`` its baseline.
    features : RandomFourier, Nystroem or None, default=None
        Explicit features in place of kernels: O(features) per sample, streams in fixed memory.
    class_weight : dict, "balanced" or None, default=None
        Factor on the loss per class.
    memory_limit : float or None, default=None
        Most bytes for kernels and what is held beside them. None is a quarter of what is free, at most 4 GB.
    n_jobs : int or None, default=None
        Threads that compute kernel rows; None is 1, −1 is all.
    random_state : int, RandomState or None, default=None
        Order of the samples, and draws of features.
    checkpoint : path, Checkpoint or None, default=None
        File to continue from if training was killed; the result is that of an uninterrupted run.
    verbose : int, default=0
        1 shows a bar with the gap and the time left.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), the weights eta of f_c(x) = Σ_m eta_m Σ_i coef_ci k_m(x_i, x)
    kernel_norms_ : array of shape (M,), ‖w^m‖
    kernel_names_ : tuple of str
    dual_coef_, support_, n_support_ : coefficients (classes, support), their samples, their number
    objective_ : the value of the problem at the model
    bounds_ : (lower, upper) of the optimum; ``certificate_``, ``duality_gap_`` say the same
    history_ : records (certificate, seconds, active kernels); n_iter_ their number; n_passes_ rows used / N, the inner
        solves with p = 1
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    [Orabona10, Eq. (9)], solved by its Algorithms 1 and 2 (`OnlineBatch`) or in the dual. ``kernel_weights_``
    lie on the sphere of the norm p/(2−p); for p = 2 all are 1. ``partial_fit`` streams Algorithm 1. p = 1 is
    [Orabona10, Eq. (8)] with its p = 1: simplex MKL with the machine of Crammer and Singer, by `ProjectedGradient`.
    Symbols: paper M → classes, F → M kernels, s^j → kernel m, λ = 1/(CN).
    Differs from the paper: two classes are allowed; bounds; sample weights; the default is the dual solver.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import ObscureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ObscureClassifier(C=10.0, p=1.5, random_state=0).fit(X, y)
    >>> lower, upper = model.bounds_
    >>> upper - lower <= 1e-3 * upper
    True

    """

    path_params: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.default, "solver": DualAscent}

    def __init__(
        self,
        bank: Any = None,
        *,
        C: float = 1.0,
        p: float = 1.5,
        solver: Any = None,
        features: Any = None,
        class_weight: Any = None,
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.C = C
        self.p = p
        self.solver = solver
        self.features = features
        self.class_weight = class_weight
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights and the classifier from samples X and their labels y."""
        self._check_parameters()
        reset(self)
        require_same_rows(X, y)
        X = check_input(self, X, reset=True)
        fitted = as_bank(self.bank).fit(X)
        self.classes_, index = encode_labels(y, fitted.n_samples)
        weight = sample_weights(sample_weight, self.class_weight, self.classes_, index)
        rng = self._generator()
        features = None if self.features is None else self.features.fit(fitted, X, rng)
        if self.p == 1.0:
            result = self._solve_on_simplex(fitted, index, weight)
            self._set_fitted(fitted, None, None, result)
            note_columns(self, X, y)
            self._warn_unless_finished(result)
            return self
        rows = self._kernel_rows(fitted, features, X)
        lam = 1.0 / (float(self.C) * index.size)
        problem = PNormProblem(rows, index.astype(np.int64), self.classes_.size, lam, float(self.p), weight)
        with gap_bars(self.verbose) as bar, blas_threads(1):
            progress = bar("p-norm MKL", getattr(self.part("solver"), "tol", None) or 1e-4)
            result = self.part("solver").solve(problem, rng, progress, self._keyed_checkpoint(problem, X))
        self._set_fitted(fitted, features, rows, result)
        note_columns(self, X, y)
        self._warn_unless_finished(result)
        return self

    def fit_partitions(self, X: Any, y: Any, *, client: Any = None, max_rounds: int = 200) -> Self:
        """Learn from partitions, which need not fit into one memory: Dask collections, or lists of arrays.

        Needs ``features``. Each round every partition ascends by itself and returns the subgradient of its
        loss; the best mixture of these points of the dual comes next; the bounds are those of the problem on
        all samples. ``client`` is that of a Dask cluster, whose workers hold the features and may get lost;
        with None this process holds those of all partitions. The first partition that is not empty fixes the
        features. Of a ``DualAscent`` only ``tol`` counts here.
        """
        self._check_parameters()
        self._check_for_partitions(max_rounds)
        reset(self)
        tol = self.part("solver").tol
        with gap_bars(self.verbose, "round") as bar, blas_threads(1):
            data = PartitionedData(X, y, client)
            self.classes_ = data.classes
            first = check_input(self, data.first(), reset=True)
            self.bank_ = as_bank(self.bank).fit(first)
            rng = self._generator()
            features = self.features.fit(self.bank_, first, rng)
            if client is None:
                self._require_room_for(features, data.n_samples, "in all partitions", "or a client")
            factors = class_factors(self.class_weight, data.classes, data.class_counts)
            found = solve_partitioned(
                data.read(PartitionReader(self._column_checker(), features, data.classes, factors)),
                data.classes.size,
                features.offsets,
                1.0 / (float(self.C) * data.n_samples),
                float(self.p),
                data.update,
                tol=tol,
                max_rounds=max_rounds,
                seed=int(rng.integers(2**31)),
                progress=bar("p-norm MKL", tol),
            )
        self.kernel_names_ = self.bank_.names
        self.kernel_weights_, self.kernel_norms_ = found.eta, found.norms
        self.scorer_: Any = FeatureScorer(features, found.eta, found.theta)
        self.n_support_ = found.n_support
        self._set_bounds(found.certificate, found.history, tol)
        warn_of_gap(found.certificate, tol, f"max_rounds={max_rounds} were made; raise it, or tol")
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Pass a batch of samples once through the online stage; the first call names all ``classes``.

        The first batch fixes what the kernels learn (widths, scalings, landmarks). A batch with an error
        in it leaves the model as it was.
        """
        self._check_parameters()
        before = dict(vars(self))
        try:
            self._update_stream(X, y, classes, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """Return the scores of the classes; for two classes their difference, second minus first."""
        self._require_fit("scorer_")
        values = self.scorer_.scores(check_input(self, X, reset=False))
        return np.asarray(values[:, 1] - values[:, 0] if self.classes_.size == 2 else values)

    def _kernel_parts(self, X: Any) -> AnyArray:
        parts = self.scorer_.contributions(check_input(self, X, reset=False))
        return np.asarray(parts[:, [1]] - parts[:, [0]] if self.classes_.size == 2 else parts)

    def _kernel_rest(self) -> AnyArray:
        return np.zeros(1 if self.classes_.size == 2 else self.classes_.size)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each sample."""
        return predicted_classes(self.decision_function(X), self.classes_)

    def combined_kernel(self, X: Any, Z: Any = None) -> Matrix:
        """Return Σ eta_m k_m between the rows of X and of Z, the training samples by default."""
        self._require_fit("scorer_")
        if Z is None and not hasattr(self, "support_"):
            raise ValueError(
                "After partial_fit or fit_partitions there is no set of training samples; pass Z."
            )
        return super().combined_kernel(X, Z)

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0.0)
        check_number("p", self.p, above=np.nextafter(1.0, 0.0), below=np.nextafter(2.0, 3.0))
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        solver = self.part("solver")
        check_part("solver", solver, PNormSolver, "DualAscent(), OnlineBatch() or Pegasos()")
        solver.check()
        as_checkpoint(self.checkpoint)
        if self.p == 1.0:
            self._check_for_simplex(solver)
        if self.features is not None:
            check_part("features", self.features, Features, "RandomFourier(n_features=200)")
            if is_precomputed(self.bank):
                raise ValueError(
                    "Explicit features need a bank that computes its kernels; got bank='precomputed'."
                )

    def _check_for_simplex(self, solver: PNormSolver) -> None:
        """Refuse what p = 1 could only ignore."""
        if not isinstance(solver, DualAscent):
            raise ValueError(
                f"p=1 is solved in the dual: solver must be DualAscent() or None; got {solver!r}."
            )
        for name in ("features", "checkpoint"):
            if getattr(self, name) is not None:
                raise ValueError(f"p=1 takes no {name}; use p above 1, such as p=1.05, or {name}=None.")

    def _check_for_partitions(self, max_rounds: Any) -> None:
        """Refuse what training on partitions could only ignore."""
        self._require_powers("fit_partitions")
        if self.features is None:
            raise ValueError("Training on partitions needs explicit features: features=RandomFourier(200).")
        check_count("max_rounds", max_rounds)
        if not isinstance(self.part("solver"), DualAscent):
            raise ValueError(
                "fit_partitions ascends the dual on every partition: solver must be DualAscent(tol=...) or "
                f"None; got {self.solver!r}."
            )
        if self.checkpoint is not None:
            raise ValueError(
                "fit_partitions writes no checkpoint; set checkpoint=None. A cluster computes again what a "
                "lost worker held."
            )

    def _require_powers(self, method: str) -> None:
        """Raise ValueError for p = 1, whose dual norm is no power of sums."""
        if self.p == 1.0:
            raise ValueError(f"{method} needs p above 1, such as p=1.05; got p=1.")

    def _solve_on_simplex(self, fitted: FittedKernels, index: AnyArray, weight: Vector) -> PNormResult:
        """Solve the problem of p = 1, on kernels in float64 that are stored if they fit into memory."""
        solver, n_classes = self.part("solver"), self.classes_.size
        policy = StoragePolicy(
            centre=False,
            tol=solver.tol,
            dtype="float64",
            memory_limit=self.memory_limit,
            n_threads=threads_for(self.n_jobs),
            solver=SolverSize(columns=n_classes),
            stored_up_to=20_000,
        )
        with gap_bars(self.verbose) as bar, blas_threads(1):
            grams = build_gram_stack(fitted, policy)
            check_diagonals(np.diagonal(grams.combine(np.ones(len(fitted))))[None])
            progress = bar("simplex", solver.tol)
            how = (float(self.C), weight, solver.tol, int(np.ceil(solver.max_passes)), progress)
            return solve_on_simplex(grams, index.astype(np.int64), n_classes, *how)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _kernel_rows(self, fitted: Any, features: Any, X: Any) -> KernelRows:
        if features is None:
            rows = build_kernel_rows(fitted, self.classes_.size, self.memory_limit, threads_for(self.n_jobs))
            check_diagonals(rows.diagonals)
            return rows
        # Beside the features a solver holds K_m A, a change of it, and a copy on the way.
        products = 3 * len(fitted) * self.classes_.size
        self._require_room_for(features, fitted.n_samples, "", "or partial_fit", products)
        rows = FeatureRows(features.transform(X), features.offsets)
        rows.check()
        return rows

    def _require_room_for(self, features: Any, n: int, where: str, else_: str, beside: int = 0) -> None:
        """Raise MemoryError unless the features of n samples fit, with ``beside`` more numbers per sample."""
        D = int(features.offsets[-1])
        what = f"{D} features of {n} samples {where}".rstrip()
        advice = f"raise memory_limit, use fewer features, {else_}"
        require_room(8 * n * (D + beside), self.memory_limit, what, advice)

    def _column_checker(self) -> Any:
        """Return an estimator of the same bank that knows the columns of the first partition."""
        checker = type(self)(bank=self.bank)
        for name in ("n_features_in_", "feature_names_in_", "column_labels_"):
            if hasattr(self, name):
                setattr(checker, name, getattr(self, name))
        return checker

    def _keyed_checkpoint(self, problem: PNormProblem, X: Any) -> Checkpoint | None:
        """Return where the fit is saved, under a key of everything that decides its result."""
        checkpoint = as_checkpoint(self.checkpoint)
        if checkpoint is None:
            return None
        # Samples are hashed as they were given; kernels between sixteen of them identify the bank.
        probes = np.unique(np.linspace(0, problem.n_samples - 1, 16).astype(np.intp))
        samples = joblib.hash(X, hash_name="sha1", coerce_mmap=True)
        seed = self.random_state if isinstance(self.random_state, int) else None
        parts = (samples, problem.lam, problem.p, self.part("solver"), self.features, seed)
        return checkpoint.with_key(parts, problem.rows.square_block(probes), problem.y, problem.weight)

    def _set_fitted(self, fitted: Any, features: Any, rows: KernelRows | None, result: PNormResult) -> None:
        """Set the learnt attributes from the solution."""
        self.bank_ = fitted.for_prediction()
        self.kernel_names_ = fitted.names
        self.kernel_weights_, self.kernel_norms_ = result.eta, result.norms
        self.support_ = np.flatnonzero(result.coef.any(axis=1))
        self.dual_coef_ = np.ascontiguousarray(result.coef[self.support_].T)
        self.n_support_ = int(self.support_.size)
        self._set_bounds(result.certificate, result.history, getattr(self.part("solver"), "tol", None))
        self.n_passes_ = result.passes
        self.scorer_ = KernelScorer(self.bank_, result.eta, self.dual_coef_, self.support_, self._n_threads)
        if isinstance(rows, FeatureRows):
            self.scorer_ = FeatureScorer(features, result.eta, rows.Phi.T @ result.coef)

    def _set_bounds(self, certificate: Certificate, history: Sequence[Record], tol: float | None) -> None:
        """Set the bounds of the optimum, and their history; ``tol`` is the relative gap asked for, if any was."""
        self.certificate_ = replace(certificate, tol=tol)
        self.bounds_ = OptimumBounds(certificate.lower, certificate.upper)
        self.duality_gap_, self.objective_ = certificate.relative_gap, certificate.upper
        self.history_ = list(history)
        self.n_iter_ = len(self.history_)

    def _warn_unless_finished(self, result: PNormResult) -> None:
        """Say so when a solver with a tolerance stopped above it, or any solver was interrupted."""
        tol = getattr(self.part("solver"), "tol", None)
        missed = tol is not None and result.certificate.relative_gap > tol
        if result.stopped == "converged" or (result.stopped == "epochs" and not missed):
            return
        why = {
            "epochs": "all epochs were made; raise max_epochs, or use solver=None, which is certified",
            "max_passes": f"{result.passes:.0f} row passes were used; raise max_passes or tol",
            "stalled": "rounding hides the rest; raise tol, or scale the kernels to similar size",
            "interrupted": "it was interrupted; the best coefficients so far are kept",
        }[result.stopped]
        above = "" if tol is None else f", above tol={tol:.2e}"
        warnings.warn(
            f"Stopped at a relative duality gap of {result.certificate.relative_gap:.2e}{above}: {why}.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _update_stream(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Pass a batch through the stream, and set the attributes that follow from it."""
        self._require_powers("partial_fit")
        if is_precomputed(self.bank):
            raise ValueError(
                "partial_fit needs a bank that computes its kernels: samples of later batches have no "
                "entries in bank='precomputed'."
            )
        require_same_rows(X, y)
        first = not hasattr(self, "scorer_")  # a fit that failed has left classes, but nothing learnt
        X = check_input(self, X, reset=first)
        if first:
            self.classes_ = named_classes(classes)
        elif classes is not None and not np.array_equal(named_classes(classes), self.classes_):
            raise ValueError(
                f"classes={list(classes)} differ from those of the first call, {self.classes_.tolist()}; "
                "leave classes out after it."
            )
        index = labels_among(y, self.classes_, X.shape[0])
        weight = sample_weights(sample_weight, None, self.classes_, index, all_classes=False)
        weight = weight * class_factors(self.class_weight, self.classes_)[index]
        stream = self.stream_ if hasattr(self, "stream_") else self._new_stream(X)
        with blas_threads(1):
            self._set_streamed(update_stream(stream, X, index, weight, self.memory_limit))

    def _new_stream(self, X: Any) -> KernelStream | FeatureStream:
        """Return a stream that starts from nothing, or from what ``fit`` has learnt."""
        rule = OnlineRule(float(self.p) / (float(self.p) - 1.0), getattr(self.solver, "eta", 2.0))
        fitted = hasattr(self, "scorer_")
        if not fitted:
            self.bank_ = as_bank(self.bank).fit(X)
            self.kernel_names_ = self.bank_.names
        M, C = len(self.bank_), self.classes_.size
        s = rule.theta_squares(self.kernel_weights_, self.kernel_norms_) if fitted else np.zeros(M)
        if self.features is None:
            return KernelStream(self.bank_, rule, s, C, first=self.scorer_ if fitted else None)
        if fitted:
            return FeatureStream(self.scorer_.features, rule, s, rule.q * self.scorer_.theta, self.n_support_)
        features = self.features.fit(self.bank_, X, self._generator())
        return FeatureStream(features, rule, s, np.zeros((int(features.offsets[-1]), C)))

    def _set_streamed(self, stream: KernelStream | FeatureStream) -> None:
        """Set what a stream has learnt, and remove what is true of one set of samples only."""
        of_a_fit = "bounds_ certificate_ duality_gap_ objective_ history_ n_passes_ support_ dual_coef_"
        for name in of_a_fit.split():
            self.__dict__.pop(name, None)
        self.stream_ = self.scorer_ = stream
        self.kernel_weights_, self.kernel_norms_ = stream.rule.weights_and_norms(stream.s)
        self.n_support_ = stream.n_support
        self.n_iter_ = 1
