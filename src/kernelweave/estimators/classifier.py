"""The soft-margin MKL classifier: a bank of kernels, a learner, a geometry, a solver."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.estimators.base import KernelClassifier
from kernelweave.estimators.calibration import calibrate
from kernelweave.estimators.class_targets import (
    class_indices,
    class_pairs,
    encode_indicators,
    is_multilabel,
    votes,
)
from kernelweave.estimators.feature_model import FeatureModel
from kernelweave.estimators.sample_blocks import Survey, TargetCode
from kernelweave.estimators.training import TrainingData
from kernelweave.estimators.validation import (
    check_choice,
    class_factors,
    encode_labels,
    named_classes,
    sample_weights,
    signs,
)
from kernelweave.geometry import BoxSimplex, Simplex
from kernelweave.learners import Hinge
from kernelweave.solvers import Newton
from kernelweave.views.batches import Batches


class MKLClassifier(KernelClassifier, FeatureModel):
    r"""Multiple kernel learning for classification, with a duality-gap certificate.

    .. math:: \min_{\eta \in \mathcal M} \max_{\alpha} g(\alpha) - \sum_m \eta_m \tfrac12 v'K_m v + r(\eta),
       \qquad v = \alpha∘y

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.prepared()`: a linear and a Laplacian kernel of unit variance on each view,
        whose columns are prepared by their types. "precomputed": X is a list of M matrices (rows, n_train), or one
        array (rows, n_train, M) that scikit-learn can split.
    learner : Hinge, NuHinge, SquaredHinge, Fisher or None, default=None
        The loss for fixed weights; None is ``Hinge(C="loo")`` for the bank None, else ``Hinge(C=1.0)``.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``BoxSimplex(theta=0.5)`` for the bank None: no kernel gets more than
        half. With other banks it is ``Simplex()``, which selects few kernels.
    features : Landmarks, RandomFourier or None, default=None
        Explicit features in place of kernels, for very many samples: every kernel by its values at a few
        landmarks. The kernels are then approximate, and the certificate is that of the approximate ones.
    solver : Solver or None, default=None
        The loop over the weights; None chooses: Newton steps, or the closed form of the lp ball (p ≥ 2)
        if ``tol`` is 1e-5 or more. Beyond 1000 kernels: ColumnGeneration where few are used, else the closed
        form. Kernels of a table with more than 2000 samples are not stored: StreamedDescent.
    tol : float, default=1e-4
        Relative duality gap to stop at. Below 1e-4 the kernels are kept in float64.
    max_iter : int or None, default=None
        Most inner solves per problem; None leaves it to the solver.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class.
    multiclass : {"shared", "per_class", "one_vs_one"}, default="shared"
        Beyond two classes, one-vs-rest with one set of weights for all classes, or with weights per class; or a vote of
        all pairs of classes, with weights per pair. With several labels per sample, weights for all or per label.
    probability : bool, default=False
        Also fit scikit-learn's sigmoid calibration (5-fold), which `predict_proba` needs.
    dtype : {"auto", "float32", "float64"}, default="auto"
        How kernels are stored. The certificate is that of the kernels as given, whatever the storage.
    memory_limit : float or None, default=None
        Most bytes a fit may take; None is a quarter of what is free, at most 4 GB.
    n_jobs : int or None, default=None
        Threads for the passes over the kernels, or over the classes; None is 1, −1 is all.
    random_state : int or None, default=None
        Draws the landmarks, or random features, and the samples that a fit on features begins with; a fit on
        the kernels themselves is deterministic.
    verbose : int, default=0
        1 shows a bar with the gap and the time left.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class, per pair or per label
    kernel_names_ : tuple of str
    dual_coef_, support_, intercept_ : coefficients α∘y of the support vectors, one row per binary problem. If
        kernels were stored in float32 they may exceed C a little: see `kernelweave.solvers.certify`
    certificate_ : Certificate with ``upper``, ``lower``, ``gap``, ``relative_gap``; summed over the classes
    certificates_ : list of Certificate, one per problem solved
    duality_gap_, objective_ : the relative gap and the upper bound of ``certificate_``
    storage_ : Storage with ``how`` the kernels were held and the ``error`` they carried; certificates do not
    n_iter_ : inner solves on all samples (the most over the classes)
    history_ : list of records (certificate, seconds, active kernels), or one such list per class
    n_support_ : how many support vectors there are of every class, or for every label
    coef_, feature_importances_, support_vectors_ : where the kernels allow them: slopes of linear kernels, shares of
        columns with kernels of their own, rows of a table; else an AttributeError says why not
    multilabel_ : whether y was a matrix of indicators, one column per label
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn; of several labels ``classes_`` are their numbers

    Notes
    -----
    The framework of [Xu13, Eq. (11), (13), (16)]; `presets` has the published methods by name.
    Symbols: paper μ → ``kernel_weights_``, α∘y → ``dual_coef_``, θ → ``geometry.theta``.
    Differs from the paper: nothing in the problem; the solver is second order and certified.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import KernelBank, MKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> model = MKLClassifier(KernelBank.per_view(views=views)).fit(X / X.std(), y)
    >>> model.kernel_weights_.round(2)
    array([...])
    >>> model.duality_gap_ < 1e-4
    True

    """

    multiclass_choices: ClassVar[tuple[str, ...]] = ("per_class", "shared", "one_vs_one")
    # Whether y may be a matrix of indicators, one column per label.
    takes_indicators: ClassVar[bool] = True
    accepts_missing_views: ClassVar[bool] = True
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {
        "bank": KernelBank.default,
        "learner": Hinge,
        "geometry": Simplex,
        "solver": Newton,
    }
    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {
        "bank": KernelBank.prepared,
        "learner": partial(Hinge, C="loo"),
        "geometry": partial(BoxSimplex, theta=0.5),
    }

    def __init__(
        self,
        bank: Any = None,
        *,
        learner: Any = None,
        geometry: Any = None,
        features: Any = None,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        class_weight: Any = None,
        multiclass: str = "shared",
        probability: bool = False,
        dtype: str = "auto",
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.learner = learner
        self.geometry = geometry
        self.features = features
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.probability = probability
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kernel weights and the classifier from samples X and their labels y.

        With ``features`` X may also be `batches`, which bring their labels, or a Dask collection.
        """
        self._check_parameters()
        if self.probability:
            if isinstance(X, Batches) or hasattr(X, "to_delayed"):
                raise ValueError(
                    "probability=True calibrates on one table in memory; fit batches and Dask collections with "
                    "probability=False."
                )
            calibrate(self, X, y, sample_weight)
            return self
        if self.features is not None:
            return self._fit_on_features(X, y, sample_weight)
        return self._fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("multiclass", self.multiclass, self.multiclass_choices)

    def _encode_targets(self, y: Any, sample_weight: Any, n_samples: int) -> tuple[Matrix, Vector, AnyArray]:
        if self.takes_indicators and is_multilabel(y):
            return encode_indicators(y, n_samples, sample_weight, self.class_weight)
        classes, index = encode_labels(y, n_samples)
        weight = sample_weights(sample_weight, self.class_weight, classes, index)
        return signs(index, classes.size), weight, classes

    def _problems(self, data: TrainingData) -> dict[str, AnyArray]:
        if data.Y.shape[1] == 1 or self.multiclass not in ("per_class", "one_vs_one"):
            return super()._problems(data)
        if self.multiclass == "one_vs_one":
            return {name: np.where(data.Y[:, b] > 0, 1.0, -1.0) for name, (_, b) in self._pairs(data).items()}
        assert data.classes is not None
        return {f"class {label}": data.Y[:, c] for c, label in enumerate(data.classes)}

    def _pairs(self, data: TrainingData) -> dict[str, tuple[int, int]]:
        """Return the pairs of classes that are told apart one by one, by name."""
        classes = data.classes
        assert classes is not None
        if data.multilabel:
            raise ValueError(
                "multiclass='one_vs_one' is for one label per sample, but y has several columns of labels: use "
                "'per_class' or 'shared'."
            )
        return {f"{classes[a]} against {classes[b]}": (a, b) for a, b in class_pairs(classes.size)}

    def _weight_of(self, data: TrainingData, name: str) -> Vector:
        if data.Y.shape[1] == 1 or self.multiclass != "one_vs_one":
            return data.weight
        inside = (data.Y[:, self._pairs(data)[name]] > 0).any(axis=1)
        return np.where(inside, data.weight, 0.0)

    def _count_support(self, data: TrainingData) -> AnyArray:
        if data.multilabel:
            return np.asarray(np.count_nonzero(self.dual_coef_, axis=1))
        return np.asarray(np.bincount(class_indices(data.Y)[self.support_], minlength=self.classes_.size))

    def _shaped(self, values: AnyArray) -> AnyArray:
        if self.multiclass == "one_vs_one" and values.shape[1] > 1:
            return votes(values, self.classes_.size)
        return super()._shaped(values)

    def _check_features(self) -> None:
        super()._check_features()
        if self.multiclass == "one_vs_one":
            raise ValueError(
                "multiclass='one_vs_one' needs kernels; on features= use 'per_class' or 'shared'."
            )

    def _columns_of_problems(self, n_targets: int) -> dict[str, Indices | None]:
        if n_targets == 1 or self.multiclass != "per_class":
            return super()._columns_of_problems(n_targets)
        return {f"class {c}": np.array([c]) for c in range(n_targets)}

    def _target_code(self, survey: Survey) -> TargetCode:
        if len(survey.labels) < 2:
            raise ValueError(
                f"The classifier needs samples of at least 2 classes, but y has {len(survey.labels)} class only: "
                f"{list(survey.labels)}."
            )
        classes = np.unique(np.array(list(survey.labels)))
        counts = np.array([survey.labels[label] for label in classes], dtype=np.float64)
        return TargetCode(classes, class_factors(self.class_weight, classes, counts))

    def _stream_code(self, classes: Any) -> TargetCode:
        if not hasattr(self, "classes_"):
            self.classes_ = named_classes(classes)
        elif classes is not None and not np.array_equal(named_classes(classes), self.classes_):
            raise ValueError(
                f"classes={list(classes)} differ from those of the first call, {self.classes_.tolist()}; "
                "leave classes out after it."
            )
        return TargetCode(self.classes_, class_factors(self.class_weight, self.classes_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.takes_indicators and self.multiclass != "one_vs_one"
        return tags
