"""Multi-instance MKL: which instances of a positive bag make it positive is learnt as candidates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.estimators.parameters import check_choice, check_share
from kernelweave.views.bags import Bags
from kernelweave.weak_labels import MultiStart, Outcome
from kernelweave.weak_labels.bag_classifier import BagClassifier, Members
from kernelweave.weak_labels.bag_learning import learn_keys, learn_labels
from kernelweave.weak_labels.bag_machines import BagFit


@dataclass(frozen=True, kw_only=True)
class KeyFit(BagFit):
    """Coefficients of instances with the candidates they come from."""

    outcome: Outcome = field(repr=False)


@dataclass(eq=False, repr=False, kw_only=True)
class MultiInstanceMKLClassifier(BagClassifier):
    r"""Multiple kernel learning from bags of instances with one label per bag.

    A positive bag has at least one positive instance. Which ones is ambiguous: candidates are selections of
    key instances (``ambiguity="input"``), or labelings of all instances (``"output"``), and each becomes a
    base kernel with a weight.

    .. math:: K^{tm}_{ij} = y_i y_j \frac{1}{|δ^{tm}_i||δ^{tm}_j|}
       \sum_{a \in δ^{tm}_i, b \in δ^{tm}_j} k_m(x_{ia}, x_{jb})

    Parameters
    ----------
    bank : KernelBank or None, default=None
        Kernels of the instances; None is `KernelBank.distances()`. Whatever the bank's scaling, each is
        scaled to mean diagonal one on the training instances, after centring where they are centred.
    ambiguity : {"input", "output"}, default="input"
        Key instances per bag, or labels per instance.
    C : float, default=10.0
        Price of a squared margin violation of a bag, or of an instance.
    theta : float or None, default=1.2
        The cap on a candidate's weight is theta / T with T candidates; None is the hard margin.
    positive_share : float or None, default=None
        Least share of positive instances in a positive bag ("output"), or the share of a bag that are its key
        instances ("input"), above 0 and at most 1; None is one instance.
    threshold : {"cv", "zero"}, default="cv"
        Where bag scores are cut: by cross-validation inside the training bags, or at zero.
    cv : int, splitter or pairs of indices, default=3
        Folds for the threshold, which hold every bag out once; a number of them is stratified and shuffled.
    centering : "auto" or bool, default="auto"
        Whether kernels are centred; "auto": where bag labels are balanced.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class of bags.
    max_rounds : int, default=7
        Most candidates per kernel.
    tol, max_iter : as in `SemiSupervisedMKLClassifier`
    memory_limit : float or None, default=None
        Most bytes for the kernels of the instances; None is 80 % of what is free.
    random_state : int, default=0
        Seed of the folds and of the search for candidates.
    verbose : int, default=0
        1 shows a bar.

    Attributes
    ----------
    key_instances_ : for each training bag the place in it of its highest instance; −1 for negative bags
    candidates_, candidate_weights_, kernel_weights_ : as in `SemiSupervisedMKLClassifier`
    threshold_ : the cut of bag scores, which is part of ``intercept_``
    certificate_, duality_gap_, objective_, stopped_, history_, n_iter_ : of the final fit
    classes_, kernel_names_, centered_, n_features_in_ : as elsewhere

    Notes
    -----
    [Xu14, Examples 1 and 2, Sec. 4.5.3]. A positive bag is its key instance, a negative bag the mean of its
    instances; a bag's score is its highest instance's, as in the key-instance machine the thesis extends.
    Symbols: δ → ``candidates_``.
    Differs from the paper: means over key instances; the threshold, C and the bag rule are not stated there.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MultiInstanceMKLClassifier
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(4, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0  # one instance makes a bag positive
    >>> model = MultiInstanceMKLClassifier().fit(bags, y)
    >>> model.key_instances_[:4]
    array([-1,  2, -1,  2])

    """

    ambiguity: str = "input"
    C: float = 10.0
    theta: float | None = 1.2
    positive_share: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("ambiguity", self.ambiguity, ("input", "output"))
        check_share("positive_share", self.positive_share, positive=True, optional=True)

    def _train(self, grams: list[Matrix], members: Members, signs: Vector, prices: Vector) -> BagFit:
        learn = learn_keys if self.ambiguity == "input" else learn_labels
        outcome, coef = learn(
            grams,
            members,
            signs,
            prices,
            self.positive_share,
            theta=self.theta,
            max_rounds=self.max_rounds,
            tol=self.tol,
            max_iter=self.max_iter,
            oracle=MultiStart(seed=self.random_state),
        )
        machines = sum(r.n_machines for r in outcome.rounds)
        return KeyFit(coef, 0.0, outcome.result, len(outcome.candidates), machines, outcome=outcome)

    def _keep_fit(self, fit: BagFit, bags: Bags, signs: Vector, values: Vector) -> None:
        assert isinstance(fit, KeyFit)
        self._keep_outcomes([fit.outcome])
        self._warn_if_open([fit.outcome])
        super()._keep_fit(fit, bags, signs, values)
        highest = np.array([part.argmax() for part in bags.split(values)])
        self.key_instances_ = np.where(signs > 0, highest, -1)
