"""From labels to pairs: any metric learner of pairs as a transformer of labelled samples."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.base import reset
from kernelweave.estimators.validation import (
    check_count,
    check_number,
    keep_labels,
    label_column,
    require_classes,
    with_fitted_columns,
)
from kernelweave.metric.inputs import check_pairs, points_by_index
from kernelweave.metric.itml import ITML
from kernelweave.metric.mahalanobis import MahalanobisDistance
from kernelweave.views.tables import as_floats, as_table


def pairs_from_labels(
    labels: Any, n_pairs: int, similar_share: float = 0.5, random_state: Any = None
) -> tuple[AnyArray, AnyArray]:
    """Return random pairs of samples as indices (n, 2), and +1 for equal, -1 for different labels.

    Similar pairs come first. No pair comes twice; where fewer of a kind exist than asked for, all are taken.

    >>> ends, y = pairs_from_labels(["a", "a", "b", "b"], n_pairs=4, random_state=0)
    >>> ends.shape, y.tolist()
    ((4, 2), [1, 1, -1, -1])
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    _, labels = np.unique(np.asarray(labels), return_inverse=True)
    n_similar = round(similar_share * n_pairs)
    similar = _draw_pairs(labels, True, n_similar, rng)
    different = _draw_pairs(labels, False, n_pairs - n_similar, rng)
    return np.vstack([similar, different]), np.repeat([1, -1], [len(similar), len(different)])


def _draw_pairs(labels: AnyArray, equal: bool, n_wanted: int, rng: np.random.Generator) -> AnyArray:
    """Return different pairs i < j of samples with equal, or with different labels, all equally likely."""
    n, sizes = len(labels), np.bincount(labels)
    n_equal_by_class = sizes * (sizes - 1) // 2
    n_equal = int(n_equal_by_class.sum())
    n_possible = n_equal if equal else n * (n - 1) // 2 - n_equal
    n_wanted = min(n_wanted, n_possible)
    if 4 * n_wanted >= n_possible or n <= 64:  # a large part of them all: list them
        first, second = np.triu_indices(n, 1)
        fitting = np.flatnonzero((labels[first] == labels[second]) == equal)
        chosen = rng.choice(fitting, n_wanted, replace=False)
        return np.column_stack([first[chosen], second[chosen]])
    # A small part: draw, and drop what does not fit or has come before. A pair's code is i n + j.
    by_class = np.argsort(labels, kind="stable")
    class_starts = np.cumsum(sizes) - sizes
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < n_wanted:
        if equal:
            classes = rng.choice(len(sizes), 2 * n_wanted, p=n_equal_by_class / n_equal)
            within = rng.integers(0, sizes[classes][:, None], size=(len(classes), 2))
            drawn = by_class[class_starts[classes][:, None] + within]
        else:
            drawn = rng.integers(0, n, size=(2 * n_wanted, 2))
        i, j = np.sort(drawn, axis=1).T
        fits = (i != j) & ((labels[i] == labels[j]) == equal)
        codes = np.concatenate([codes, (i * n + j)[fits]])
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]
    return np.column_stack(divmod(codes[:n_wanted], n))


@dataclass(eq=False, repr=False)
class SupervisedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""A metric from labelled samples: random pairs of equal and of different labels, then a pair learner.

    Parameters
    ----------
    learner : ITML, ITMLPlus, ITMLSelect or None, default=None
        Estimator that learns from the pairs; None is ``ITML()``.
    n_pairs : int or None, default=None
        How many pairs to draw; None is 20 times the square of the number of classes.
    similar_share : float, default=0.5
        Share of pairs with equal labels.
    random_state : int, RandomState or None, default=None
        Seed of the pairs.
    preprocessor : array of shape (n_points, d), callable or None, default=None
        The table of points; then X may be indices (n,) into it. Or a function from names to points.

    Attributes
    ----------
    learner_ : the fitted learner, for `pair_distance`, `certificate_` and the rest
    pairs_, pair_labels_ : indices (n, 2) of the pairs drawn, and ±1
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    The supervised protocol of [Davis07]. Pairs are indices into X; no differences are stored.
    Differs from the paper: the share of similar pairs is fixed instead of left to chance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernelweave import SupervisedMetric
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(SupervisedMetric(random_state=0), KNeighborsClassifier()).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True

    """

    learner: Any = None
    _: KW_ONLY
    n_pairs: int | None = None
    similar_share: float = 0.5
    random_state: Any = None
    preprocessor: Any = None

    def fit(
        self, X: Any, y: Any, privileged: Any = None, calibration_params: dict[str, Any] | None = None
    ) -> Self:
        """Learn from samples X (n, d), labels y and privileged features (n, g), NaN rows where not known.

        ``calibration_params`` are those of `ITML.calibrate_threshold`, for the threshold on the pairs drawn.
        """
        check_count("n_pairs", self.n_pairs, optional=True)
        check_number("similar_share", self.similar_share, above=0.0, below=1.0)
        reset(self)
        X, y = self._points(X, reset=True), label_column(y)
        check_consistent_length(X, y)
        self.classes_ = self._check_classes(y)
        rng = check_random_state(self.random_state)
        # 20 pairs for every pair of classes, as metric-learn makes.
        n_pairs = 20 * len(self.classes_) ** 2 if self.n_pairs is None else self.n_pairs
        self.pairs_, self.pair_labels_ = pairs_from_labels(y, n_pairs, self.similar_share, rng)
        learner = clone(ITML() if self.learner is None else self.learner).set_params(preprocessor=X)
        if learner.random_state is None:
            learner.set_params(random_state=rng.randint(2**31 - 1))
        learner.fit(
            self.pairs_, self.pair_labels_, privileged=privileged, calibration_params=calibration_params
        )
        self.learner_ = learner.set_params(preprocessor=None)  # the samples are not kept
        return self

    def _points(self, X: Any, *, reset: bool) -> Matrix:
        """Return samples as numbers, by their indices or names where a preprocessor knows them.

        A frame's columns are put in the order of the fit; one that holds no numbers is named.
        """
        if self.preprocessor is not None and np.ndim(X) == 1:
            X = points_by_index(np.asarray(X), self.preprocessor)
        elif hasattr(X, "columns"):
            X = as_table(X, "X") if reset else with_fitted_columns(self, as_table(X, "X"))
            as_floats(X, "X")
            if reset:
                keep_labels(self, X)
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64))

    def _check_classes(self, y: AnyArray) -> AnyArray:
        require_classes(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"Pairs of different labels need at least 2 classes; y has 1 class only: {classes.tolist()}."
            )
        return classes

    @property
    def _n_features_out(self) -> int:
        return int(self.learner_.components_.shape[0])

    def transform(self, X: Any) -> Matrix:
        """Return X L': points whose Euclidean distances are the learnt ones."""
        check_is_fitted(self)
        X = self._points(X, reset=False)
        return self.learner_.transform(X)  # type: ignore[no-any-return]

    def get_mahalanobis_matrix(self) -> Matrix:
        """Return the learnt matrix M."""
        check_is_fitted(self)
        return self.learner_.get_mahalanobis_matrix()  # type: ignore[no-any-return]

    def get_metric(self) -> MahalanobisDistance:
        """Return the distance as a function of two points; with ``squared=True`` it is the squared one."""
        check_is_fitted(self)
        return self.learner_.get_metric()  # type: ignore[no-any-return]

    @property
    def components_(self) -> Matrix:
        """L with M = L'L, as the learner has it."""
        return np.asarray(self.learner_.components_)

    def pair_distance(self, pairs: Any) -> Vector:
        """Return the learnt distance of the two points of every pair (n, 2, d), or of indices (n, 2)."""
        check_is_fitted(self)
        checked = check_pairs(pairs, self.preprocessor)
        validate_data(self, checked.points, reset=False, skip_check_array=True)
        return checked.lengths(self.learner_.components_)

    def pair_score(self, pairs: Any) -> Vector:
        """Return minus the distance: the larger, the more similar."""
        return -self.pair_distance(pairs)

    @property
    def certificate_(self) -> Any:
        """The certificate of the learner."""
        return self.learner_.certificate_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
