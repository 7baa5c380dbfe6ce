"""What every learnt Mahalanobis metric offers: distances, scores, a linear map, and a threshold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils import ClassifierTags, TransformerTags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.validation import check_choice, check_number, check_share
from kernelweave.metric.inputs import check_pairs, check_signs, points_by_index

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def metric_components(M: Matrix) -> Matrix:
    """Return L with M = L'L: its rows are the axes of the metric, longest first."""
    values, vectors = np.linalg.eigh(M)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1].T)


class MahalanobisMetric(BaseEstimator):  # type: ignore[misc]
    """A metric d(x, x')² = (x - x')'M(x - x') that was learnt; ``components_`` is L with M = L'L.

    ``preprocessor`` is the table of points that pairs may be indices into, a function from names to points, or
    None.
    """

    preprocessor: Any

    def get_mahalanobis_matrix(self) -> Matrix:
        """Return the learnt matrix M."""
        check_is_fitted(self, "components_")
        return np.asarray(self.components_.T @ self.components_)

    def get_metric(self) -> MahalanobisDistance:
        """Return the distance as a function of two points, for example for scikit-learn's neighbours.

        With ``squared=True`` the function returns the squared distance.
        """
        check_is_fitted(self, "components_")
        return MahalanobisDistance(self.components_.copy())

    def transform(self, X: Any) -> Matrix:
        """Return X L': points whose Euclidean distances are the learnt ones."""
        check_is_fitted(self, "components_")
        if self.preprocessor is not None and np.ndim(X) == 1:
            X = points_by_index(np.asarray(X), self.preprocessor)
        X = check_array(X, dtype=np.float64, input_name="X")
        validate_data(self, X, reset=False, skip_check_array=True)  # as many features as in fit
        return np.asarray(X @ self.components_.T)

    def pair_distance(self, pairs: Any) -> Vector:
        """Return the learnt distance (not squared) of the two points of every pair."""
        check_is_fitted(self, "components_")
        checked = check_pairs(pairs, self.preprocessor)
        validate_data(self, checked.points, reset=False, skip_check_array=True)
        return checked.lengths(self.components_)

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
        return float(roc_auc_score(check_signs(y, len(scores)), scores))

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
        rule = check_calibration({"strategy": strategy, "min_rate": min_rate, "beta": beta})
        distances = self.pair_distance(pairs)
        signs = check_signs(y, len(distances))
        return self.set_threshold(best_threshold(distances, signs, **rule))

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


def check_calibration(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of `calibrate_threshold` after checking them."""
    unknown = sorted(set(params) - {"strategy", "min_rate", "beta"})
    if unknown:
        raise ValueError(
            f"A threshold is calibrated by strategy, min_rate and beta; got {', '.join(map(repr, unknown))}."
        )
    rule = {"strategy": "accuracy", "min_rate": None, "beta": 1.0} | params
    check_choice("strategy", rule["strategy"], STRATEGIES)
    if rule["strategy"] == "f_beta":
        check_number("beta", rule["beta"], above=0.0)
    elif rule["strategy"] != "accuracy":
        check_share("min_rate", rule["min_rate"])
    return rule


class MahalanobisDistance:
    """The learnt distance of two points, as something to call."""

    def __init__(self, components: Matrix) -> None:
        self.components = components

    def __call__(self, first: Any, second: Any, squared: bool = False) -> float:
        x, z = (np.asarray(point, dtype=np.float64) for point in (first, second))
        width = self.components.shape[1]
        if x.shape != (width,) or z.shape != (width,):
            raise ValueError(
                f"The metric compares two points of {width} features, received arrays of shape {x.shape} and "
                f"{z.shape}; for many pairs use pair_distance, for whole tables Euclidean distances of transform(X)."
            )
        moved = self.components @ (x - z)
        return float(moved @ moved) if squared else float(np.linalg.norm(moved))


def best_threshold(
    distances: Vector,
    signs: Vector,
    strategy: str = "accuracy",
    *,
    min_rate: float | None = None,
    beta: float = 1.0,
    weight: Vector | None = None,
) -> float:
    """Return the threshold that serves the strategy best on these pairs, in the middle between two distances.

    ``max_tpr`` and ``max_tnr`` keep the other rate at ``min_rate`` or more. Ties go to the smaller threshold.
    """
    weight = np.ones(len(distances)) if weight is None else weight
    n_similar, n_different = weight[signs > 0.0].sum(), weight[signs < 0.0].sum()
    if n_similar <= 0.0 or n_different <= 0.0:
        raise ValueError("A threshold needs similar and dissimilar pairs; there is only one kind.")
    values = np.unique(distances)
    # Just below all distances, in the middle between neighbours, and at the largest.
    cuts = np.r_[np.nextafter(values[0], -np.inf), (values[:-1] + values[1:]) / 2.0, values[-1]]
    tp, fp = (_weight_up_to(cuts, distances[signs == kind], weight[signs == kind]) for kind in (1.0, -1.0))
    tpr, tnr = tp / n_similar, 1.0 - fp / n_different
    if strategy == "accuracy":
        quality: AnyArray = tp + n_different - fp
    elif strategy == "f_beta":
        quality = (1.0 + beta**2) * tp / ((1.0 + beta**2) * tp + beta**2 * (n_similar - tp) + fp)
    else:
        kept, wanted = (tnr, tpr) if strategy == "max_tpr" else (tpr, tnr)
        quality = np.where(kept >= min_rate, wanted, -1.0)
    return float(cuts[int(np.argmax(quality))])


def _weight_up_to(cuts: Vector, distances: Vector, weight: Vector) -> Vector:
    """Return the weight of the pairs with a distance of at most each cut."""
    order = np.argsort(distances)
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(total[np.searchsorted(distances[order], cuts, side="right")])
