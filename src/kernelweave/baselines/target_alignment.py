"""Kernel alignment: the cosine between kernels, the weights that maximise it, and a classifier with them.

`alignment`, `centered_alignment` and `alignf_weights` are functions of matrices. The classifier cannot hold
all matrices at once: it reads the kernels a few rows at a time and keeps their inner products (`moments`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import type_of_target

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.baselines.two_step import TwoStepClassifier
from kernelweave.estimators.class_targets import class_indices
from kernelweave.estimators.training import FitTask
from kernelweave.estimators.validation import check_choice
from kernelweave.gram import KernelSource
from kernelweave.gram.packed import reference_samples, reference_shift
from kernelweave.gram.source import matrix_sources


def alignment(K: Any, target: Any) -> float:
    r"""Return the alignment ⟨K, T⟩ / (‖K‖ ‖T‖), the cosine between two kernels.

    Parameters
    ----------
    K : array (n, n)
    target : array (n, n), the other kernel; or n labels, for the kernel T = yy' of labels ±1 (beyond two
        classes 1 within a class and −1/(classes − 1) between two).

    Notes
    -----
    [Cristianini01]; [Xu14, Eq. (2.18)]. A kernel of zeros has alignment 0.
    Differs from the paper: several classes have a target too.

    Examples
    --------
    >>> import numpy as np
    >>> alignment(np.eye(4), [1, 1, -1, -1])
    0.5

    """
    return _cosine(_square(K, "K"), _target(target, np.shape(K)[0]))


def centered_alignment(K: Any, target: Any) -> float:
    r"""Return the alignment of the centred kernels PKP and PTP, P = I − 11'/n.

    Parameters
    ----------
    K : array (n, n)
    target : array (n, n), or n labels as in `alignment`.

    Notes
    -----
    [Cortes12, Def. 4]; [Xu14, Eq. (2.20)]. Unlike `alignment` it does not change when a constant is added to
    a kernel, nor when classes differ in size. A constant kernel has alignment 0.
    Differs from the paper: several classes have a target too.

    Examples
    --------
    >>> import numpy as np
    >>> round(centered_alignment(np.eye(4), ["a", "a", "b", "b"]), 6)
    0.57735

    """
    return _cosine(_centred(_square(K, "K")), _centred(_target(target, np.shape(K)[0])))


def alignf_weights(kernels: Any, y: Any, *, centered: bool = True) -> Vector:
    r"""Return the weights eta ≥ 0, ‖eta‖₂ = 1, whose combination is best aligned with the labels.

    .. math:: \eta = v/\|v\|, \quad v = \arg\min_{v \ge 0} v'Gv - 2v'a, \quad
       G_{pq} = \langle K_p, K_q\rangle, \; a_p = \langle K_p, T\rangle

    Parameters
    ----------
    kernels : list of M arrays (n, n), or one array (n, n, M).
    y : n labels, or a target kernel (n, n).
    centered : bool, default=True
        Centre kernels and target first (ALIGNF); False maximises the plain alignment.

    Notes
    -----
    [Cortes12, Prop. 9]; [Xu14, Eq. (2.21)], a non-negative least squares problem; uncentred the QCQP of
    [Xu14, Eq. (2.19)], which has the same direction. Where kernels are linearly dependent, the weights are
    one of several optima; where no kernel has anything to do with the labels, they are even.
    Differs from the paper: (2.21) is printed as a maximum, it is a minimum.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> alignf_weights([np.eye(4), np.outer(y, y), np.ones((4, 4))], y).round(6)
    array([0., 1., 0.])

    """
    matrices = _matrices(kernels)
    n, T = matrices[0].shape[0], _target(y, matrices[0].shape[0])
    T = _centred(T) if centered else T
    no_labels = np.empty((n, 0))
    [found] = moments(matrix_sources(matrices), len(matrices), no_labels, np.ones(n), centred=centered)
    # Centring is a projection: the inner product with the centred target needs no centred kernel.
    return best_aligned(found.products, np.array([np.sum(K * T) for K in matrices]))


@dataclass(eq=False, repr=False, kw_only=True)
class AlignedMKLClassifier(TwoStepClassifier):
    r"""Kernel weights by alignment with the labels, then one classifier on the combined kernel.

    .. math:: \max_{\eta \ge 0} \frac{\langle K(\eta), T\rangle}{\|K(\eta)\| \|T\|}, \qquad T = yy'

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The classifier of the second step; None is ``Hinge(C=1.0)``.
    criterion : {"alignf", "align", "kta"}, default="alignf"
        "alignf" maximises the centred alignment of the combination; "align" weighs each kernel by its own
        centred alignment; "kta" maximises the alignment without centring.
    tol : float, default=1e-4
        Relative duality gap of the classifier; the weights are exact.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on its samples in the alignment.
    multiclass : {"shared", "per_class"}, default="shared"
        Beyond two classes: one set of weights from T = 1 within a class and −1/(classes − 1) between two, or
        weights for each class against the rest.
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class; of unit length
    alignment_ : float or array (classes,), the alignment reached, centred unless the criterion is "kta"
    kernel_alignments_ : array (M,) or (classes, M), that of every kernel alone
    certificate_, duality_gap_, objective_ : of the classifier on the combined kernel
    dual_coef_, support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`

    Notes
    -----
    "alignf" is [Cortes12, Sec. 4.2]; [Xu14, Eq. (2.20), (2.21)], a non-negative least squares problem;
    "align" [Cortes12, Sec. 4.1]; "kta" [Cristianini01]; [Xu14, Eq. (2.18), (2.19)]. Samples count by
    their weights. Symbols: paper μ → ``kernel_weights_``.
    Differs from the paper: several classes, and weights of samples, are covered too.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import AlignedMKLClassifier, KernelBank
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> model = AlignedMKLClassifier(KernelBank.per_view(views=views)).fit((X - X.mean()) / X.std(), y)
    >>> model.kernel_weights_.argmax(), bool(model.alignment_ > model.kernel_alignments_.max())
    (np.int64(2), True)

    """

    criterion: str = "alignf"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("criterion", self.criterion, ("alignf", "align", "kta"))

    def _weigh(self, task: FitTask) -> list[Vector]:
        found = label_moments(task, centred=self.criterion != "kta")
        each = np.array([one.kernel_alignments() for one in found])
        if self.criterion == "align":
            weights = [_of_unit_length(np.maximum(alignments, 0.0)) for alignments in each]
        else:
            weights = [best_aligned(one.products, one.with_target) for one in found]
        reached = [one.combined_alignment(eta) for one, eta in zip(found, weights, strict=True)]
        self.alignment_ = reached[0] if len(found) == 1 else np.array(reached)
        self.kernel_alignments_ = each[0] if len(found) == 1 else each
        return weights


def best_aligned(products: Matrix, with_target: Vector) -> Vector:
    """Return eta ≥ 0 of unit length whose combination has the largest alignment with the target.

    Parameters
    ----------
    products : array of shape (M, M), ⟨K_p, K_q⟩; zero for kernels without direction, which get no weight.
    with_target : array of shape (M,), ⟨K_m, T⟩.
    """
    norms = np.sqrt(np.diagonal(products))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)  # kernels of norm one
    G, a = scale[:, None] * products * scale, scale * with_target
    values, vectors = np.linalg.eigh(0.5 * (G + G.T))
    kept = values > 1e-14 * max(float(values[-1]), 0.0)  # smaller eigenvalues are rounding
    if not kept.any() or a.max() <= 0.0:
        return _of_unit_length(np.ones(a.size))
    roots = np.sqrt(values[kept])
    # min ‖Rv − b‖² with R'R = G and R'b = a: a lies in the range of G, its null space holds nothing.
    v, _ = nnls(roots[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ a) / roots)
    return _of_unit_length(scale * v)


def _of_unit_length(weights: Vector) -> Vector:
    """Return weights ≥ 0 scaled to unit length; even ones where all are zero."""
    weights = weights if weights.any() else np.ones(weights.size)
    return np.asarray(weights / np.linalg.norm(weights))


@dataclass(frozen=True)
class Moments:
    r"""⟨K_p, K_q⟩, ⟨K_m, T⟩ and ‖T‖, weighted by the samples: all that alignment with T needs.

    ``products`` is (M, M) with zero rows for kernels that have no direction, ``with_target`` is (M,).
    """

    products: Matrix
    with_target: Vector
    target_norm: float

    def kernel_alignments(self) -> Vector:
        """Return the alignment of every kernel with T; 0 where one of the two has no direction."""
        lengths = np.sqrt(np.diagonal(self.products)) * self.target_norm
        return np.divide(self.with_target, lengths, out=np.zeros(lengths.size), where=lengths > 0.0)

    def combined_alignment(self, eta: Vector) -> float:
        """Return the alignment of Σ eta_m K_m with T."""
        length = float(np.sqrt(max(float(eta @ self.products @ eta), 0.0))) * self.target_norm
        return float(eta @ self.with_target) / length if length > 0.0 else 0.0


def moments(
    sources: Sequence[KernelSource],
    n_kernels: int,
    codes: Matrix,
    weight: Vector,
    *,
    centred: bool,
    per_column: bool = False,
    block_entries: int = 1 << 23,
) -> list[Moments]:
    """Return the inner products of kernels with one another and with labels, in one pass over their rows.

    Parameters
    ----------
    sources : where the rows of the kernels come from.
    codes : array of shape (n, columns), the labels t_c; the target kernel T is Σ_c t_c t_c'.
    weight : array of shape (n,), sample weights: ⟨K, L⟩ = Σ w_i w_j K_ij L_ij.
    centred : centre kernels and codes by their weighted means.
    per_column : return one item for every column c with the target t_c t_c', instead of one item.
    block_entries : how many entries of all kernels together are in memory at a time; 64 MB by default.

    Notes
    -----
    With r_i = Σ_j w_j K_ij, ⟨PKP, PLP⟩ = ⟨K, L⟩ − 2/W Σ_i w_i r_i s_i + (Σ w_i r_i)(Σ w_i s_i)/W². The
    large constant part of a kernel cancels there and leaves rounding. Kernels are therefore first shifted by
    the mean of a few samples, which does not change PKP: what is left to subtract is then small.
    """
    n, total = weight.size, float(weight.sum())
    chosen, shifts = reference_samples(n), np.zeros((n_kernels, n))
    for source in sources if centred else ():
        for m, K in source.block(chosen, slice(0, n)):
            shifts[m] = reference_shift(K, chosen)
    T = codes - (weight @ codes) / total if centred else codes
    root = np.sqrt(weight)
    products, targets = np.zeros((n_kernels, n_kernels)), np.zeros((n_kernels, T.shape[1]))
    sums = np.empty((n_kernels, n))
    for rows, K in _row_blocks(sources, n_kernels, n, block_entries):
        K -= shifts[:, rows, None]
        K -= shifts[:, None, :]
        sums[:, rows] = K @ weight
        targets += np.einsum("ic,mic->mc", weight[rows, None] * T[rows], K @ (weight[:, None] * T))
        K *= root[rows, None]
        K *= root
        flat = K.reshape(n_kernels, -1)
        products += flat @ flat.T
    if centred:
        grand = sums @ weight
        products -= 2.0 / total * (sums * weight) @ sums.T - np.outer(grand, grand) / total**2
    # A kernel whose norm is a rounding error of its size is constant: it has no direction.
    diagonals = dict(pair for source in sources for pair in source.diagonals())
    sizes = total * np.array([np.abs(diagonals[m]).max() for m in range(n_kernels)])
    constant = np.sqrt(np.maximum(np.diagonal(products), 0.0)) <= 1e-12 * sizes
    products[constant], products[:, constant], targets[constant] = 0.0, 0.0, 0.0
    code_products = ((weight[:, None] * T).T @ T) ** 2  # ⟨t_c t_c', t_d t_d'⟩
    if per_column:
        lengths = np.sqrt(np.diagonal(code_products))
        return [Moments(products, one, float(length)) for one, length in zip(targets.T, lengths, strict=True)]
    return [Moments(products, targets.sum(axis=1), float(np.sqrt(code_products.sum())))]


def _row_blocks(
    sources: Sequence[KernelSource], n_kernels: int, n: int, block_entries: int
) -> Iterator[tuple[slice, AnyArray]]:
    """Yield rows and the rows of all kernels, (M, rows, n), in a buffer that may be written to."""
    step = min(n, max(1, block_entries // max(n_kernels * n, 1)))
    buffer = np.empty((n_kernels, step, n))
    for rows in gen_batches(n, step):
        K = buffer[:, : rows.stop - rows.start]
        for source in sources:
            for m, block in source.block(rows, slice(0, n)):
                K[m] = block
        yield rows, K


def label_moments(task: FitTask, *, centred: bool) -> list[Moments]:
    """Return the moments of every problem of a task: of its column ±1, or of all classes together."""
    kernels, targets = task.kernels, list(task.targets.values())
    assert task.data.classes is not None
    per_column = len(targets) > 1
    codes = (
        np.column_stack(targets)
        if per_column
        else simplex_code(class_indices(targets[0]), task.data.classes.size)
    )
    sources = kernels.sources()
    return moments(sources, len(kernels), codes, task.data.weight, centred=centred, per_column=per_column)


def simplex_code(index: AnyArray, n_classes: int) -> Matrix:
    """Return one row per sample whose inner products are 1 within a class and −1/(classes − 1) between two.

    For two classes it is the kernel yy' of labels ±1.
    """
    one_hot = np.eye(n_classes)[index]
    return np.asarray(np.sqrt(n_classes / (n_classes - 1.0)) * (one_hot - 1.0 / n_classes))


def _cosine(K: Matrix, T: Matrix) -> float:
    lengths = float(np.linalg.norm(K)) * float(np.linalg.norm(T))
    return float(np.sum(K * T)) / lengths if lengths > 0.0 else 0.0


def _centred(K: Matrix) -> Matrix:
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    # Centred, a constant kernel is rounding, which has no direction.
    flat = np.abs(centred).max() <= 1e-13 * np.abs(K).max()
    return np.zeros_like(centred) if flat else np.asarray(centred)


def _target(target: Any, n: int) -> Matrix:
    if np.ndim(target) == 2:
        T = _square(target, "the target")
        if T.shape[0] != n:
            raise ValueError(f"The kernel has {n} samples and the target {T.shape[0]}; they must agree.")
        return T
    codes = _codes(target, n)
    return np.asarray(codes @ codes.T)


def _codes(y: Any, n: int) -> Matrix:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must be {n} labels or a kernel of shape ({n}, {n}); got shape {labels.shape}.")
    if type_of_target(labels) not in ("binary", "multiclass"):
        raise ValueError(
            f"y must hold class labels; got {type_of_target(labels)} values: for those pass the target "
            "kernel, such as np.outer(y, y)."
        )
    classes, index = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y must have at least 2 classes; it has {classes.size}: {classes.tolist()}.")
    return simplex_code(index, classes.size)


def _matrices(kernels: Any) -> list[Matrix]:
    array_like = not isinstance(kernels, list | tuple) and np.ndim(kernels) == 3
    given: list[AnyArray] = (
        [np.asarray(kernels)[:, :, m] for m in range(np.shape(kernels)[2])] if array_like else list(kernels)
    )
    if not given:
        raise ValueError("kernels must hold at least one matrix; got none.")
    matrices = [np.ascontiguousarray(_square(K, f"kernel {m}")) for m, K in enumerate(given)]
    for m, K in enumerate(matrices):
        if K.shape != matrices[0].shape:
            raise ValueError(
                f"All kernels need the same samples; kernel 0 has {matrices[0].shape[0]} and kernel {m} has "
                f"{K.shape[0]}."
            )
    return matrices


def _square(K: Any, name: str) -> Matrix:
    matrix = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} must be a square matrix; got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite; it has entries that are NaN or infinite.")
    return matrix
