"""ITML-S: drop the pairs that privileged features contradict, then learn the metric from the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.estimators.validation import check_from_zero
from kernelweave.metric.inputs import TrainingPairs
from kernelweave.metric.itml import ITML


@dataclass(eq=False, repr=False, kw_only=True)
class ITMLSelect(ITML):
    r"""ITML on the pairs that privileged features do not contradict.

    First ITML on the privileged features; then the share ``drop`` of the similar pairs that are farthest
    apart there, and of the dissimilar pairs that are nearest, is left out; then ITML on the rest.

    Parameters
    ----------
    gamma, prior, bounds, max_iter, tol, preprocessor, random_state, verbose
        As in `ITML`; gamma, max_iter and tol hold for both stages.
    drop : float, default=0.1
        Share of each kind of pairs with privileged features to leave out; 0 is `ITML`.

    Attributes
    ----------
    kept_ : bool array of shape (n_pairs,), the pairs learnt from, those without privileged features among
        them; not those of weight 0
    selector_ : the ITML fitted on privileged features, or None where there were none
    components_, bounds_, threshold_, multipliers_, certificate_, duality_gap_, objective_, history_, n_iter_,
    n_features_in_ : as in `ITML`

    Notes
    -----
    The baseline ITML-S of [Xu14, Sec. 5.5.2].
    Bounds and priors are those of all samples, as there, not only of those whose pairs are kept.
    Differs from the paper: how many pairs to remove is not stated there; here it is a parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import ITMLSelect
    >>> rng = np.random.default_rng(0)
    >>> pairs, privileged = rng.normal(size=(40, 2, 3)), rng.normal(size=(40, 2, 2))
    >>> y = np.where(abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> model = ITMLSelect(drop=0.2, random_state=0).fit(pairs, y, privileged=privileged)
    >>> int(model.kept_.sum())
    32

    """

    drop: float = 0.1

    def fit(
        self,
        pairs: Any,
        y: Any,
        privileged: Any = None,
        sample_weight: Any = None,
        calibration_params: dict[str, Any] | None = None,
    ) -> Self:
        """Learn from pairs (n, 2, d), y = ±1 and privileged features as in `ITMLPlus.fit`.

        ``sample_weight`` multiplies gamma in both stages; pairs of weight 0 are not among those to drop from.
        """
        return self._fit(pairs, y, privileged, sample_weight, calibration_params)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_from_zero("drop", self.drop, below=1.0)

    def _select_pairs(self, given: TrainingPairs) -> TrainingPairs:
        self.kept_, self.selector_ = given.weight > 0.0, None
        used = given.has_privileged & self.kept_
        if used.any():
            self.selector_ = self._fit_selector(given.subset(used))
            distance = given.privileged.subset(used).lengths(self.selector_.components_)
            self.kept_[used] = ~contradicting_pairs(distance, given.sign[used], self.drop)
            if not self.kept_.any():
                raise ValueError(
                    f"drop={self.drop!r} leaves none of the {len(used)} pairs to learn from; lower drop, or "
                    "give more pairs."
                )
        return replace(given, weight=given.weight * self.kept_)

    def _fit_selector(self, data: TrainingPairs) -> ITML:
        """Return the metric of the privileged features."""
        selector = ITML(
            gamma=self.gamma,
            max_iter=self.max_iter,
            tol=self.tol,
            preprocessor=data.privileged.points,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        selector.fit(data.privileged.ends, data.sign, sample_weight=data.weight)
        selector.preprocessor = None  # the table of points is not kept
        return selector


def contradicting_pairs(distance: Vector, sign: Vector, share: float) -> AnyArray:
    """Return which similar pairs are farthest apart and which dissimilar ones nearest, a share of each."""
    mask = np.zeros(len(sign), dtype=bool)
    for kind in (1.0, -1.0):
        members = np.flatnonzero(sign == kind)
        worst_first = members[np.argsort(-kind * distance[members], kind="stable")]
        mask[worst_first[: round(share * len(members))]] = True
    return mask
