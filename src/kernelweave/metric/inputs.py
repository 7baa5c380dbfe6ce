"""What the user gives, checked: pairs, labels and privileged features, prior metrics and bounds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.datasets import make_spd_matrix
from sklearn.utils.validation import check_array, column_or_1d

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.validation import checked_weights, require_one_type
from kernelweave.metric.problem import PairSpace, PointPairs, distance_percentiles


@dataclass(frozen=True)
class TrainingPairs:
    """Pairs with their signs, weights and privileged features, and which pairs have these."""

    pairs: PointPairs
    sign: Vector
    weight: Vector
    privileged: PointPairs
    has_privileged: AnyArray

    def subset(self, mask: AnyArray) -> TrainingPairs:
        """Return the pairs of a mask."""
        return TrainingPairs(
            self.pairs.subset(mask),
            self.sign[mask],
            self.weight[mask],
            self.privileged.subset(mask),
            self.has_privileged[mask],
        )


def check_training_pairs(
    pairs: Any, y: Any, privileged: Any, sample_weight: Any, preprocessor: Any
) -> TrainingPairs:
    """Return all that a metric is learnt from."""
    checked = check_pairs(pairs, preprocessor)
    sign = check_signs(y, len(checked))
    weight = checked_weights(sample_weight, sign)
    known, has_privileged = check_privileged(privileged, checked, indexed=np.ndim(pairs) == 2)
    return TrainingPairs(checked, sign, weight, known, has_privileged)


def check_pairs(pairs: Any, preprocessor: Any) -> PointPairs:
    """Return pairs of shape (n, 2, d), or pairs of indices (n, 2) into the rows of the preprocessor."""
    given: AnyArray = np.asarray(pairs)
    if callable(preprocessor) and given.ndim == 2:
        return _named_pairs(given, preprocessor)
    if preprocessor is not None and given.ndim == 2:
        points = check_array(preprocessor, dtype=np.float64, order="C", input_name="preprocessor")
        _check_indices("pairs", given, len(points))
        if given.shape[1] != 2 or len(given) == 0:
            raise ValueError(f"pairs of indices must have shape (n, 2) with n > 0; got {given.shape}.")
        return PointPairs(points, np.ascontiguousarray(given, dtype=np.int64))
    if given.ndim != 3 or given.shape[1] != 2:
        raise ValueError(
            "pairs must have shape (n, 2, d), or (n, 2) indices with preprocessor= the table of points; got "
            f"an array of shape {given.shape}."
        )
    checked = check_array(given, allow_nd=True, dtype=np.float64, order="C", input_name="pairs")
    if checked.shape[2] == 0:
        raise ValueError(f"pairs need at least one feature; got shape {given.shape}.")
    return _consecutive_pairs(checked)


def _named_pairs(names: AnyArray, preprocessor: Any) -> PointPairs:
    """Return pairs of points by their names, which the preprocessor knows; each point is asked for once."""
    if names.shape[1] != 2 or len(names) == 0:
        raise ValueError(f"pairs of names must have shape (n, 2) with n > 0; got {names.shape}.")
    different, places = np.unique(names, return_inverse=True)
    points = points_by_index(different, preprocessor)
    return PointPairs(points, places.reshape(names.shape).astype(np.int64))


def _consecutive_pairs(pairs: AnyArray) -> PointPairs:
    n, _, d = pairs.shape
    return PointPairs(pairs.reshape(2 * n, d), np.arange(2 * n, dtype=np.int64).reshape(n, 2))


def points_by_index(indices: AnyArray, preprocessor: Any) -> Matrix:
    """Return rows of the preprocessor by their indices, or what it returns for these names."""
    if callable(preprocessor):
        named = check_array(preprocessor(indices), dtype=np.float64, order="C", input_name="preprocessor(X)")
        if len(named) != len(indices):
            raise ValueError(f"preprocessor returned {len(named)} points for {len(indices)} names.")
        return np.asarray(named)
    points = np.asarray(preprocessor)
    _check_indices("X", indices, len(points))
    return points[indices.astype(np.intp)]


def _check_indices(name: str, indices: AnyArray, n_points: int) -> None:
    if indices.size and not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"{name} must be features, or whole numbers as rows of preprocessor; got {indices.dtype}."
        )
    if indices.size and (indices.min() < 0 or indices.max() >= n_points):
        raise ValueError(
            f"{name} must be indices from 0 to {n_points - 1}, the rows of preprocessor; "
            f"got {indices.min()} to {indices.max()}."
        )


def check_signs(y: Any, n_pairs: int) -> Vector:
    """Return +1 for similar and -1 for dissimilar pairs."""
    if y is None:
        raise ValueError("Pairs need labels y, +1 for similar and -1 for dissimilar ones; got None.")
    y = column_or_1d(y)
    require_one_type(np.asarray(y))
    if len(y) != n_pairs:
        raise ValueError(f"There are {n_pairs} pairs but {len(y)} labels; they must agree.")
    values = np.unique(y)
    if not set(values.tolist()) <= {-1, 1}:
        raise ValueError(
            f"y must be +1 for similar and -1 for dissimilar pairs; got the values {values[:5].tolist()}."
        )
    return np.asarray(y, dtype=np.float64)


def check_privileged(privileged: Any, pairs: PointPairs, *, indexed: bool) -> tuple[PointPairs, AnyArray]:
    """Return the privileged points by pair, and which pairs have them.

    A sample without privileged features is a row of NaN; a pair needs both of its rows, and different ones.
    """
    n = len(pairs)
    nothing = PairSpace.without_features(n), np.zeros(n, dtype=bool)
    if privileged is None:
        return nothing
    found = _check_privileged_table(privileged, pairs, indexed)
    absent: AnyArray = np.asarray(np.isnan(found.points).all(axis=1))
    has_privileged = ~absent[found.ends].any(axis=1)
    if not has_privileged.any():
        warnings.warn(
            f"None of the {n} pairs has privileged features (all rows are NaN): this is ITML.", stacklevel=5
        )
        return nothing
    found = replace(found, points=np.where(absent[:, None], 0.0, found.points))
    equal = has_privileged & ~found.have_distinct_points()
    if equal.any():
        warnings.warn(
            f"{int(equal.sum())} pairs have two equal rows of privileged features ({_first_few(equal)}): a "
            "slack of zero is none, so they are treated as pairs without privileged features.",
            stacklevel=5,
        )
    return found, has_privileged & ~equal


def _check_privileged_table(privileged: Any, pairs: PointPairs, indexed: bool) -> PointPairs:
    """Return the privileged points as given, in rows that are known or NaN throughout."""
    table = check_array(
        privileged,
        allow_nd=True,
        dtype=np.float64,
        order="C",
        ensure_all_finite="allow-nan",
        input_name="privileged",
    )
    n = len(pairs)
    if table.ndim == 2 and indexed and len(table) == len(pairs.points):
        found = PointPairs(table, pairs.ends)
    elif table.ndim == 3 and table.shape[:2] == (n, 2):
        found = _consecutive_pairs(table)
    else:
        raise ValueError(
            f"privileged must have shape ({n}, 2, g), one pair of rows per pair, or where pairs are indices "
            f"({len(pairs.points)}, g), one row per row of preprocessor; got {np.shape(privileged)}."
        )
    missing = np.isnan(found.points)
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        raise ValueError(
            f"A row of privileged is known or NaN throughout, but {int(partly.sum())} rows have some NaN "
            f"(rows {np.flatnonzero(partly)[:5].tolist()} of the table of points); fill them in, or make the "
            "whole row NaN."
        )
    return found


def usable_pairs(data: TrainingPairs) -> AnyArray:
    """Return which pairs can be learnt from; a dissimilar pair of equal points cannot, and is named."""
    hopeless = (data.sign < 0.0) & ~data.pairs.have_distinct_points()
    if hopeless.any():
        warnings.warn(
            f"{int(hopeless.sum())} dissimilar pairs consist of two equal points ({_first_few(hopeless)}): "
            "no metric separates them, they are left out.",
            stacklevel=4,
        )
    usable = (data.weight > 0.0) & ~hopeless
    require_pairs(usable)
    return usable


def require_pairs(usable: AnyArray) -> None:
    """Raise where no pair is left to learn from."""
    if not usable.any():
        raise ValueError(
            "No pair is left to learn from: all are dissimilar at distance zero or have weight 0."
        )


def _first_few(mask: AnyArray) -> str:
    """Return the numbers of the first five pairs of a mask in words."""
    numbers = np.flatnonzero(mask).tolist()
    shown = ", ".join(map(str, numbers[:5]))
    return f"{'number' if len(numbers) == 1 else 'numbers'} {shown}{', …' if len(numbers) > 5 else ''}"


def check_prior(name: str, prior: Any, points: Matrix, random_state: Any = None) -> Matrix:
    """Return the positive definite matrix that a word or an array stands for."""
    dim = points.shape[1]
    legal = f"{name} must be 'identity', 'covariance', 'random' or a ({dim}, {dim}) array"
    if isinstance(prior, str):
        if prior == "identity":
            return np.eye(dim)
        if prior == "covariance":
            return _inverse_covariance(name, points)
        if prior == "random":
            return np.asarray(make_spd_matrix(dim, random_state=random_state))
        raise ValueError(f"{legal}; got {prior!r}.")
    M: Matrix = np.array(prior, dtype=np.float64)
    if M.shape != (dim, dim):
        raise ValueError(f"{legal}; got shape {M.shape}.")
    if not np.isfinite(M).all() or np.abs(M - M.T).max() > 1e-8 * np.abs(M).max():  # more than rounding
        raise ValueError(f"{name} must be a symmetric matrix of finite numbers.")
    return _check_definite(name, (M + M.T) / 2.0, "add a little to its diagonal")


def _inverse_covariance(name: str, points: Matrix) -> Matrix:
    covariance = np.atleast_2d(np.cov(np.unique(points, axis=0), rowvar=False))
    hint = "the features are collinear or too many for the points; reduce them first, or take the identity"
    inverse = np.linalg.inv(_check_definite(f"{name}='covariance': the covariance", covariance, hint))
    return np.asarray((inverse + inverse.T) / 2.0)


def _check_definite(name: str, M: Matrix, hint: str) -> Matrix:
    # The covariance of a single point is NaN.
    values = np.linalg.eigvalsh(M) if np.isfinite(M).all() else np.array([-np.inf, 1.0])
    if values[0] <= 1e-12 * values[-1]:
        raise ValueError(
            f"{name} must be positive definite, but its eigenvalues go from {values[0]:.3g} to "
            f"{values[-1]:.3g}: {hint}."
        )
    return M


def resolve_bounds(bounds: Any, points: Matrix, prior: Matrix) -> tuple[float, float]:
    """Return (u, l) with 0 < u < l: those given, or percentiles of the squared distances under the prior."""
    if bounds is None:
        u, l = distance_percentiles(points, prior, (3.0, 97.0))  # noqa: E741
        if not 0.0 < u < l < np.inf:
            raise ValueError(
                f"The 3rd and 97th percentile of the squared distances are {u:.3g} and {l:.3g}: they cannot "
                "serve as bounds; give bounds=(u, l) with 0 < u < l."
            )
        return u, l
    given = np.asarray(bounds, dtype=np.float64).ravel()
    if given.size != 2:
        raise ValueError(f"bounds must be two squared distances (u, l); got {bounds!r}.")
    u, l = given.tolist()  # noqa: E741
    if not 0.0 < u < l < np.inf:
        raise ValueError(
            "bounds=(u, l) are squared distances with 0 < u < l: similar pairs should be nearer than u, "
            f"dissimilar ones farther than l; got u={u:g}, l={l:g}."
        )
    return u, l
