"""What every learnt Mahalanobis metric offers: distances, scores, a linear map, a threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils import ClassifierTags, TransformerTags
from sklearn.utils.validation import check_array, check_is_fitted

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.metric.inputs import Pairs, read_pairs, read_points, read_signs
from kernelweave.metric.threshold import best_threshold


def components_of(M: Matrix) -> Matrix:
    """Return L with M = L'L: its rows are the axes of the metric, longest first."""
    values, vectors = np.linalg.eigh(M)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1].T)


class MahalanobisMetric(BaseEstimator):  # type: ignore[misc]
    """A metric d(x, x')² = (x - x')'M(x - x') that was learnt; ``components_`` is L with M = L'L."""

    def get_mahalanobis_matrix(self) -> Matrix:
        """Return the learnt matrix M."""
        check_is_fitted(self, "components_")
        return np.asarray(self.components_.T @ self.components_)

    def get_metric(self) -> Callable[[Any, Any], float]:
        """Return the distance as a function of two points, for example for scikit-learn's neighbours."""
        check_is_fitted(self, "components_")
        return Metric(self.components_.copy())

    def transform(self, X: Any) -> Matrix:
        """Return X L': points whose Euclidean distances are the learnt ones."""
        check_is_fitted(self, "components_")
        given = np.asarray(X)
        if getattr(self, "preprocessor", None) is not None and given.ndim == 1:
            X = read_points(given, self.preprocessor)
        X = check_array(X, dtype=np.float64, input_name="X")
        self._check_features(X.shape[1])
        return np.asarray(X @ self.components_.T)

    def pair_distance(self, pairs: Any) -> Vector:
        """Return the learnt distance (not squared) of the two points of every pair."""
        check_is_fitted(self, "components_")
        checked = self._read(pairs)
        self._check_features(checked.points.shape[1])
        return distances(checked, self.components_)

    def pair_score(self, pairs: Any) -> Vector:
        """Return minus the distance: the larger, the more similar."""
        return -self.pair_distance(pairs)

    def decision_function(self, pairs: Any) -> Vector:
        """Return the same as `pair_score`; `predict` compares it with the threshold."""
        return self.pair_score(pairs)

    def predict(self, pairs: Any) -> AnyArray:
        """Return +1 for pairs nearer than ``threshold_``, -1 for the others."""
        check_is_fitted(self, "threshold_")
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: Any) -> float:
        """Return the area under the ROC curve of the pairs' scores."""
        scores = self.pair_score(pairs)
        return float(roc_auc_score(read_signs(y, len(scores)), scores))

    def set_threshold(self, threshold: float) -> Self:
        """Set the distance up to which `predict` calls two points similar."""
        check_is_fitted(self, "components_")
        self.threshold_ = float(threshold)
        return self

    def calibrate_threshold(
        self, pairs: Any, y: Any, strategy: str = "accuracy", *, min_rate: Any = None, beta: float = 1.0
    ) -> Self:
        """Choose the threshold on these pairs by accuracy, f_beta, or max_tpr / max_tnr.

        The last two keep the other rate at ``min_rate`` or above.
        """
        found = self.pair_distance(pairs)
        signs = read_signs(y, len(found))
        return self.set_threshold(best_threshold(found, signs, strategy, min_rate=min_rate, beta=beta))

    def _read(self, pairs: Any) -> Pairs:
        return read_pairs(pairs, getattr(self, "preprocessor", None))

    def _check_features(self, found: int) -> None:
        if found != self.n_features_in_:
            raise ValueError(
                f"X has {found} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        # Similar or not: scikit-learn's folds then keep both kinds of pairs in every part.
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.transformer_tags = TransformerTags()
        return tags


class Metric:
    """The learnt distance of two points, as something to call."""

    def __init__(self, components: Matrix) -> None:
        self.components = components

    def __call__(self, first: Any, second: Any) -> float:
        return float(np.linalg.norm(self.components @ (np.asarray(first) - np.asarray(second))))


def distances(pairs: Pairs, components: Matrix) -> Vector:
    """Return the lengths of L(x - x') over the pairs, some thousands at a time."""
    out = np.empty(len(pairs))
    for start in range(0, len(pairs), 4096):
        first, second = pairs.ends[start : start + 4096].T
        V = (pairs.points[first] - pairs.points[second]) @ components.T
        out[start : start + 4096] = np.sqrt(np.einsum("ij,ij->i", V, V))
    return out
