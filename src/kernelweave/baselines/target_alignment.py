"""Kernel alignment: the cosine between kernels, with the labels, and the combination that maximises it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.utils.multiclass import type_of_target

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.baselines.moments import Moments, moments, simplex_code
from kernelweave.gram.given import MatrixSource

# Directions of the normalised kernels with less than this share of the largest eigenvalue are rounding.
RANK = 1e-14


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
    one of several answers; where no kernel has anything to do with the labels, they are even.
    Differs from the paper: (2.21) is printed as a maximum, it is a minimum.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> alignf_weights([np.eye(4), np.outer(y, y), np.ones((4, 4))], y).round(6)
    array([0., 1., 0.])

    """
    matrices = _matrices(kernels)
    n = matrices[0].shape[0]
    if np.ndim(y) == 2 and np.shape(y) == (n, n):
        return best_aligned(_moments_with_kernel(matrices, _square(y, "the target"), centered))
    source = MatrixSource(matrices)
    return best_aligned(moments([source], len(matrices), _codes(y, n), np.ones(n), centred=centered))


def best_aligned(found: Moments) -> Vector:
    """Return eta ≥ 0 of unit length whose combination has the largest alignment with the target.

    In units where every kernel has norm one; kernels without direction get no weight.
    """
    scale = np.divide(1.0, found.norms, out=np.zeros_like(found.norms), where=found.norms > 0.0)
    G, a = scale[:, None] * found.products * scale, scale * found.with_target
    values, vectors = np.linalg.eigh(0.5 * (G + G.T))
    kept = values > RANK * max(float(values[-1]), 0.0)
    if not kept.any() or a.max() <= 0.0:
        return even(len(a))
    roots = np.sqrt(values[kept])
    # min ‖Rv − b‖² with R'R = G and R'b = a: a lies in the range of G, its null space holds nothing.
    v, _ = nnls(roots[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ a) / roots)
    v = scale * v
    length = float(np.linalg.norm(v))
    return v / length if length > 0.0 else even(len(a))


def independently_aligned(found: Moments) -> Vector:
    """Return weights of unit length in proportion to each kernel's own alignment with the target."""
    each = np.maximum(found.of_kernels(), 0.0)
    length = float(np.linalg.norm(each))
    return each / length if length > 0.0 else even(len(each))


def even(n_kernels: int) -> Vector:
    """Return equal weights of unit length."""
    return np.full(n_kernels, n_kernels**-0.5)


def _moments_with_kernel(matrices: Sequence[Matrix], T: Matrix, centered: bool) -> Moments:
    n, codes = T.shape[0], np.zeros((T.shape[0], 1))
    found = moments([MatrixSource(matrices)], len(matrices), codes, np.ones(n), centred=centered)
    T = _centred(T) if centered else T
    with_target = np.array([[np.sum(K * T)] for K in matrices]) * (found.norms[:, None] > 0.0)
    return Moments(found.products, with_target, np.array([[np.sum(T * T)]]))


def _cosine(K: Matrix, T: Matrix) -> float:
    lengths = float(np.linalg.norm(K)) * float(np.linalg.norm(T))
    return float(np.sum(K * T)) / lengths if lengths > 0.0 else 0.0


def _centred(K: Matrix) -> Matrix:
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    # A constant kernel leaves rounding, which has no direction either.
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
