"""The control every use of privileged features needs: the same model, their rows shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import _safe_split

from kernelweave._typing import AnyArray, Matrix, Vector


@dataclass(frozen=True)
class PermutedControl:
    """Scores on the same folds: with privileged features, with their rows shuffled, and without any.

    ``permuted`` has one row per shuffle. What shuffled features gain over none is no information: they put a
    price on slacks, which regularises. Only ``gain``, the mean lead over the shuffled ones, is information.
    """

    scores: Vector
    permuted: Matrix
    without: Vector

    @property
    def gain(self) -> float:
        """The mean lead of the features over shuffled ones, fold by fold."""
        return float((self.scores - self.permuted).mean())

    @property
    def gain_of_shuffled(self) -> float:
        """The mean lead of shuffled features over none."""
        return float((self.permuted - self.without).mean())


def permuted_control(
    model: Any,
    X: Any,
    y: Any,
    privileged: Any,
    *,
    cv: Any = None,
    scoring: Any = None,
    n_permutations: int = 1,
    random_state: Any = None,
) -> PermutedControl:
    """Cross-validate a model that takes ``privileged`` at fit, beside the same model on shuffled rows.

    Rows are shuffled within the training part of each fold. Beside pairs of indices, ``privileged`` may be a
    table with a row per point of ``preprocessor``; then the points of the training pairs change places. Of a
    kernel matrix X the columns are cut too. Classifiers, metric learners among them, get stratified folds.
    A model that searches its own parameters (``GridSearchCV``) searches them again for the shuffled rows, so
    that both have the same grid.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import SVMPlusClassifier
    >>> from kernelweave.evaluation import permuted_control
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(60, 2))
    >>> X, y = Z + rng.normal(size=(60, 2)), Z[:, 0] > 0
    >>> control = permuted_control(SVMPlusClassifier(), X, y, Z, cv=3, random_state=0)
    >>> control.scores.shape, control.permuted.shape, control.without.shape
    ((3,), (1, 3), (3,))

    """
    if not isinstance(n_permutations, Integral) or isinstance(n_permutations, bool) or n_permutations < 1:
        raise ValueError(f"n_permutations must be a whole number of at least 1; got {n_permutations!r}.")
    _check_routes(model)
    rng = check_random_state(random_state)
    scorer = check_scoring(model, scoring=scoring)
    folds = list(check_cv(cv, y, classifier=is_classifier(model)).split(X, y))
    take = _rows_of_points if _is_by_point(model, X, privileged) else _rows_of_samples

    def score(train: Any, test: Any, **given: Any) -> float:
        fitted = clone(model).fit(*_safe_split(model, X, y, train), **given)
        return float(scorer(fitted, *_safe_split(model, X, y, test, train)))

    def with_rows(shuffled: bool) -> list[float]:
        return [
            score(train, test, privileged=take(privileged, X, train, rng if shuffled else None))
            for train, test in folds
        ]

    return PermutedControl(
        np.array(with_rows(shuffled=False)),
        np.array([with_rows(shuffled=True) for _ in range(n_permutations)]),
        np.array([score(train, test) for train, test in folds]),
    )


def _rows_of_samples(privileged: Any, X: Any, train: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return the rows of the training samples, shuffled if a random generator is given."""
    return _safe_indexing(privileged, train if rng is None else rng.permutation(train))


def _rows_of_points(privileged: Any, X: Any, train: Any, rng: Any) -> AnyArray:
    """Return the table of all points; with a random generator those of the training pairs are shuffled."""
    table = np.array(privileged, dtype=np.float64)
    if rng is not None:
        points = np.unique(_safe_indexing(X, train))
        table[points] = table[rng.permutation(points)]
    return table


def _is_by_point(model: Any, X: Any, privileged: Any) -> bool:
    """Return whether samples are pairs of rows of a table, and privileged has a row for each row of it."""
    if np.ndim(X) != 2 or np.ndim(privileged) != 2:
        return False
    params = model.get_params()
    return any(
        name.split("__")[-1] == "preprocessor" and value is not None and len(value) == len(privileged)
        for name, value in params.items()
    )


def _check_routes(model: Any) -> None:
    """Refuse a pipeline without metadata routing, which cannot pass privileged features to a step."""
    inner = model
    while not isinstance(inner, Pipeline) and hasattr(inner, "estimator"):
        inner = inner.estimator  # a search
    if isinstance(inner, Pipeline) and not get_config()["enable_metadata_routing"]:
        raise ValueError(
            "A pipeline hands privileged features on by metadata routing only: call "
            "sklearn.set_config(enable_metadata_routing=True), and set_fit_request(privileged=True) on the "
            "step that takes them."
        )
