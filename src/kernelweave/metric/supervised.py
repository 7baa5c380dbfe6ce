"""From labels to pairs: any metric learner of pairs as a transformer of labelled samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.base import forget
from kernelweave.estimators.parameters import check_count, check_number
from kernelweave.metric.itml import ITML

PER_CLASS = 20  # pairs per pair of classes, as metric-learn makes


def pairs_from_labels(
    labels: Any, n_pairs: int, similar_share: float = 0.5, random_state: Any = None
) -> tuple[AnyArray, AnyArray]:
    """Return random pairs of samples as indices (n, 2), and +1 for equal, -1 for different labels.

    Similar pairs come first. No pair comes twice; where a kind has fewer than asked for, all are taken.

    >>> ends, y = pairs_from_labels(["a", "a", "b", "b"], n_pairs=4, random_state=0)
    >>> ends.shape, y.tolist()
    ((4, 2), [1, 1, -1, -1])
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    _, labels = np.unique(np.asarray(labels), return_inverse=True)
    wanted = round(similar_share * n_pairs)
    similar = _draw(labels, True, wanted, rng)
    different = _draw(labels, False, n_pairs - wanted, rng)
    return np.vstack([similar, different]), np.repeat([1, -1], [len(similar), len(different)])


def _draw(labels: AnyArray, equal: bool, wanted: int, rng: np.random.Generator) -> AnyArray:
    n = len(labels)
    sizes = np.bincount(labels)
    same = int((sizes * (sizes - 1) // 2).sum())
    total = same if equal else n * (n - 1) // 2 - same
    wanted = min(wanted, total)
    if wanted * 4 >= total or n <= 64:  # list them all
        first, second = np.triu_indices(n, 1)
        fits = np.flatnonzero((labels[first] == labels[second]) == equal)
        chosen = rng.choice(fits, wanted, replace=False)
        return np.column_stack([first[chosen], second[chosen]])
    members = [np.flatnonzero(labels == c) for c in range(len(sizes))]
    found = np.empty(0, dtype=np.int64)
    while len(found) < wanted:  # codes of pairs i < j; draw, drop what does not fit, drop repetitions
        if equal:
            pairs_per_class = sizes * (sizes - 1) / 2.0
            kinds = rng.choice(len(sizes), 2 * wanted, p=pairs_per_class / pairs_per_class.sum())
            places = rng.integers(0, sizes[kinds][:, None], size=(len(kinds), 2))
            drawn = np.array([members[c][place] for c, place in zip(kinds, places, strict=True)])
        else:
            drawn = rng.integers(0, n, size=(2 * wanted, 2))
        i, j = np.sort(drawn, axis=1).T
        fits = (i != j) & ((labels[i] == labels[j]) == equal)
        found = np.concatenate([found, (i * n + j)[fits]])
        found = found[np.sort(np.unique(found, return_index=True)[1])]
    return np.column_stack(divmod(found[:wanted], n))


class SupervisedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""A metric from labelled samples: random pairs of equal and of different labels, then a pair learner.

    Parameters
    ----------
    learner : ITML, ITMLPlus, ITMLSelect or None, default=None
        What learns from the pairs; None is ``ITML()``.
    n_pairs : int or None, default=None
        How many pairs to draw; None is 20 times the square of the number of classes.
    similar_share : float, default=0.5
        Share of pairs with equal labels.
    random_state : int, RandomState or None, default=None
        Seed of the pairs.

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

    def __init__(
        self,
        learner: Any = None,
        *,
        n_pairs: int | None = None,
        similar_share: float = 0.5,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.n_pairs = n_pairs
        self.similar_share = similar_share
        self.random_state = random_state

    def fit(self, X: Any, y: Any, privileged: Any = None) -> Self:
        """Learn from samples X (n, d), labels y and privileged features (n, g), NaN rows where not known."""
        check_count("n_pairs", self.n_pairs, optional=True)
        check_number("similar_share", self.similar_share, above=0.0, below=1.0)
        forget(self)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                "Pairs of different labels need at least 2 classes; y has 1 class only: "
                f"{self.classes_.tolist()}."
            )
        n_pairs = PER_CLASS * len(self.classes_) ** 2 if self.n_pairs is None else self.n_pairs
        rng = check_random_state(self.random_state)
        self.pairs_, self.pair_labels_ = pairs_from_labels(y, n_pairs, self.similar_share, rng)
        learner = clone(ITML() if self.learner is None else self.learner).set_params(preprocessor=X)
        if learner.random_state is None:
            learner.set_params(random_state=rng.randint(2**31 - 1))
        learner.fit(self.pairs_, self.pair_labels_, privileged=privileged)
        self.learner_ = learner.set_params(preprocessor=None)
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.learner_.components_.shape[0])

    def transform(self, X: Any) -> Matrix:
        """Return X L': points whose Euclidean distances are the learnt ones."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.learner_.transform(X)  # type: ignore[no-any-return]

    def get_mahalanobis_matrix(self) -> Matrix:
        """Return the learnt matrix M."""
        check_is_fitted(self)
        return self.learner_.get_mahalanobis_matrix()  # type: ignore[no-any-return]

    def pair_distance(self, pairs: Any) -> Vector:
        """Return the learnt distance of the two points of every pair (n, 2, d)."""
        check_is_fitted(self)
        return self.learner_.pair_distance(pairs)  # type: ignore[no-any-return]

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
