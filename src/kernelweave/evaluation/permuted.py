"""The control every use of privileged features needs: the same model, their rows shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state

from kernelweave._typing import Matrix, Vector


@dataclass(frozen=True)
class PermutedControl:
    """Scores on the same folds: with privileged features, with their rows shuffled, and without any.

    ``permuted`` has one row per shuffle. What shuffled features gain over none is not information: it is the
    price on slacks they bring, a regulariser. Only ``gain``, the mean lead over the shuffled ones, is.
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

    Rows are shuffled within the training part of each fold. A model that searches its own parameters
    (``GridSearchCV``) searches them again for the shuffled rows, so that both have the same grid.

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
    rng = check_random_state(random_state)
    scorer = check_scoring(model, scoring=scoring)
    folds = list(check_cv(cv, y, classifier=is_classifier(model)).split(X, y))

    def score(train: Any, test: Any, **given: Any) -> float:
        fitted = clone(model).fit(_safe_indexing(X, train), _safe_indexing(y, train), **given)
        return float(scorer(fitted, _safe_indexing(X, test), _safe_indexing(y, test)))

    def with_rows(shuffled: bool) -> list[float]:
        orders = [rng.permutation(train) if shuffled else train for train, _ in folds]
        return [
            score(train, test, privileged=_safe_indexing(privileged, order))
            for (train, test), order in zip(folds, orders, strict=True)
        ]

    return PermutedControl(
        np.array(with_rows(shuffled=False)),
        np.array([with_rows(shuffled=True) for _ in range(n_permutations)]),
        np.array([score(train, test) for train, test in folds]),
    )
