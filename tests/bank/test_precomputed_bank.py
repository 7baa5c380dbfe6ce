"""Precomputed kernels: accepted without a copy, checked, scaled, and refused in one sentence."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from tests.reference.conic import conic_optimum

from kernelweave import FisherMKLClassifier, MKLClassifier, MKLRegressor, OneClassMKL, path
from kernelweave.bank import PrecomputedBank, Views
from kernelweave.bank import precomputed as module
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram.memory import unpacked_bytes
from kernelweave.kernels import Centering, UnitDiagonal, UnitTrace
from kernelweave.learners import Hinge

rng = np.random.default_rng(0)
FEATURES = [rng.normal(size=(18, d)) for d in (2, 3, 30)]
TRAIN, NEW = np.arange(12), np.arange(12, 18)
KS = [F[TRAIN] @ F[TRAIN].T for F in FEATURES]
ROWS = [F[NEW] @ F[TRAIN].T for F in FEATURES]


def test_a_list_and_a_stack_of_matrices_are_the_same_kernels():
    for given, new in ((KS, ROWS), (tuple(KS), tuple(ROWS)), (np.dstack(KS), np.dstack(ROWS))):
        fitted = PrecomputedBank().fit(given)
        assert fitted.names == fitted.view_names == ("kernel 0", "kernel 1", "kernel 2")
        assert (len(fitted), fitted.n_samples) == (3, 12)
        for K, expected in zip(fitted.grams(), KS, strict=True):
            np.testing.assert_array_equal(K, expected)
        for m, rows in fitted.cross(new):
            np.testing.assert_array_equal(rows, ROWS[m])


def test_one_matrix_is_one_kernel_also_as_nested_lists():
    for given in (KS[0], KS[0].tolist(), [KS[0]]):
        assert len(PrecomputedBank().fit(given)) == 1
    ((m, rows),) = PrecomputedBank().fit(KS[0]).cross(ROWS[0])
    assert m == 0
    np.testing.assert_array_equal(rows, ROWS[0])


def test_float64_matrices_are_not_copied():
    stack = np.dstack(KS)
    for K, given in zip(PrecomputedBank().fit(KS).grams(), KS, strict=True):
        assert np.shares_memory(K, given)
    for K in PrecomputedBank().fit(stack).grams():
        assert np.shares_memory(K, stack)


def test_the_users_matrices_are_never_written_to():
    before = [K.copy() for K in KS]
    fitted = PrecomputedBank(scaling=(Centering(), UnitTrace())).fit(KS)
    list(fitted.grams())
    list(fitted.cross(ROWS))
    for K, then in zip(KS, before, strict=True):
        np.testing.assert_array_equal(K, then)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8])
def test_other_number_types_are_converted(dtype):
    Ks = [
        np.round(K).astype(dtype) if dtype is not np.float32 else K.astype(dtype)
        for K in ([np.eye(4) * 3, KS[1]])
    ]
    for K, given in zip(PrecomputedBank().fit([Ks[0]]).grams(), Ks, strict=False):
        assert K.dtype == np.float64
        np.testing.assert_array_equal(K, given)
    if dtype is np.float32:
        assert next(PrecomputedBank().fit([Ks[1]]).grams()).dtype == np.float64


def test_the_rounding_of_float32_products_is_accepted_and_made_symmetric():
    F = rng.normal(size=(300, 40)).astype(np.float32)
    K = F @ np.ascontiguousarray(F.copy().T)
    K[0, 1] = np.nextafter(K[0, 1], np.float32(np.inf))
    assert (K != K.T).any()
    gram = next(PrecomputedBank().fit([K]).grams())
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(gram, K, atol=1e-4)


def test_asymmetry_of_rounding_size_is_evened_out_and_more_is_an_error():
    K = KS[1].copy()
    K[2, 5] += 1e-11
    gram = next(PrecomputedBank().fit([K]).grams())
    np.testing.assert_array_equal(gram, gram.T)
    K[2, 5] += 1e-3
    with pytest.raises(ValueError, match=r"Kernel 1 is not symmetric: entry \[2, 5\] is .* and \[5, 2\] is"):
        PrecomputedBank().fit([KS[0], K])


def test_scalings_are_learnt_on_the_training_block_and_applied_to_new_rows():
    fitted = PrecomputedBank(scaling=(Centering(), UnitTrace())).fit(KS)
    for m, rows in fitted.cross(ROWS):  # asked before the Gram matrices
        mean = FEATURES[m][TRAIN].mean(axis=0)
        train, new = FEATURES[m][TRAIN] - mean, FEATURES[m][NEW] - mean
        np.testing.assert_allclose(rows, new @ train.T / (train**2).sum(), atol=1e-12)
    for K in fitted.grams():
        assert np.trace(K) == pytest.approx(1.0)


def test_a_scaling_is_learnt_once_per_matrix():
    fits = []

    class Counted(UnitTrace):
        def fit(self, K):
            fits.append(len(K))
            return super().fit(K)

    fitted = PrecomputedBank(scaling=Counted()).fit(KS)
    list(fitted.grams())
    list(fitted.cross(ROWS))
    assert fits == [12, 12, 12]


def test_only_the_kernels_and_training_samples_asked_for_are_returned():
    fitted = PrecomputedBank(scaling=UnitTrace()).fit(KS)
    columns = np.array([5, 0])
    full = dict(fitted.cross(ROWS))
    picked = list(fitted.cross(ROWS, which=np.array([2, 0]), columns=columns))
    assert [m for m, _ in picked] == [2, 0]
    for m, rows in picked:
        np.testing.assert_allclose(rows, full[m][:, columns])


def test_a_kernel_that_is_not_asked_for_may_be_broken_in_new_rows():
    rows = [ROWS[0], np.full_like(ROWS[1], np.nan), ROWS[2]]
    fitted = PrecomputedBank().fit(KS)
    assert len(list(fitted.cross(rows, which=[0, 2]))) == 2
    with pytest.raises(ValueError, match=r"Kernel 1 contains nan at \[0, 0\]"):
        fitted.cross(rows)


def three_by_three_without_bad_minors():
    """All 2 x 2 minors are fine, yet the lowest eigenvalue is 1 - 0.9 sqrt(2) < 0."""
    return np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])


BAD = [
    ([KS[0], KS[1][:, :5]], r"Kernel 1 has to be square for the training samples, received shape \(12, 5\)"),
    ([KS[0], KS[1][:5, :5]], "Kernel 0 has 12 training samples and kernel 1 has 5"),
    ([KS[0], np.full((12, 12), np.nan)], r"Kernel 1 contains nan at \[0, 0\]"),
    ([np.diag([1.0, np.inf])], r"Kernel 0 contains inf at \[1, 1\]"),
    (
        [np.eye(2), np.diag([1.0, -0.1])],
        r"Kernel 1 is indefinite: entry \[1, 1\] is -0.1 < 0; a kernel has no neg",
    ),
    (
        [np.array([[1.0, 2.0], [2.0, 1.0]])],
        r"Kernel 0 is indefinite: \|K\[0, 1\]\| = 2 is larger than .* = 1",
    ),
    ([np.array([[0.0, 2.0], [2.0, 0.0]])], "Kernel 0 is indefinite"),
    ([three_by_three_without_bad_minors()], "Kernel 0 is indefinite: its lowest eigenvalue is -0.27"),
    ([], r"received shape \(0,\)"),
    (np.ones(3), r"received shape \(3,\)"),
    (np.ones((2, 2, 2, 2)), r"received shape \(2, 2, 2, 2\)"),
    (np.ones((2, 2, 0)), r"received shape \(2, 2, 0\)"),
    ([np.array([["a"]])], "holds real numbers, received an array of type <U1"),
    ([np.eye(2) * 1j], "holds real numbers"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_matrices_that_are_no_kernels_are_refused_by_number(given, message):
    with pytest.raises(ValueError, match=message):
        PrecomputedBank().fit(given)


LARGE = 1200  # beyond what all eigenvalues are checked for, and matrices are checked when first read


def test_eigenvalues_are_left_out_where_they_would_be_expensive():
    K = np.eye(LARGE)
    K[:3, :3] = three_by_three_without_bad_minors()
    assert len(PrecomputedBank().fit([K])) == 1
    assert PrecomputedBank().fit([K]).given_matrices()[0] is K


READS = {
    "given_matrices": lambda fitted: fitted.given_matrices(2),
    "grams": lambda fitted: next(fitted.grams()),
    "sources": lambda fitted: fitted.sources(),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((3, 1130), 0.5, r"Kernel 1 is not symmetric: entry \[3, 1130\] is 0.5 and \[1130, 3\] is 0"),
        ((1130, 3), np.nan, r"Kernel 1 contains nan at \[1130, 3\]"),
        ((3, 1130), np.inf, r"Kernel 1 contains inf at \[3, 1130\]"),
        ((7, 7), -1.0, r"Kernel 1 is indefinite: entry \[7, 7\] is -1 < 0"),
        (([3, 30], [30, 3]), 1e3, r"Kernel 1 is indefinite: \|K\[3, 30\]\| = 1000 is larger than .* = 1"),
    ],
)
def test_large_matrices_are_checked_when_they_are_first_read_whoever_reads(read, place, value, message):
    bad = np.eye(LARGE)
    bad[place] = value
    fitted = PrecomputedBank().fit([np.eye(LARGE), bad])
    for _ in range(2):  # also if asked again
        with pytest.raises(ValueError, match=message):
            READS[read](fitted)


def test_matrices_are_checked_once(monkeypatch):
    calls, original = [], module.plainly_grams

    def counted(matrices, *how):
        calls.append(len(matrices))
        return original(matrices, *how)

    monkeypatch.setattr(module, "plainly_grams", counted)
    fitted = PrecomputedBank().fit(KS)
    for read in READS.values():
        read(fitted)
    assert calls == [3]


def test_checked_matrices_are_the_users_own_unless_rounding_was_evened_out():
    upset = KS[1].copy()
    upset[2, 5] += 1e-11
    one, other = PrecomputedBank().fit([KS[0], upset]).given_matrices()
    assert np.shares_memory(one, KS[0])
    np.testing.assert_array_equal(other, (upset + upset.T) / 2.0)
    assert upset[2, 5] != upset[5, 2]


def test_matrices_that_are_scaled_or_not_in_one_piece_are_not_read_where_they_are():
    assert PrecomputedBank().fit(KS).holds_matrices
    assert not PrecomputedBank(scaling=UnitTrace()).fit(KS).holds_matrices
    assert not PrecomputedBank().fit(np.dstack(KS)).holds_matrices
    assert not PrecomputedBank().fit(KS).for_prediction().holds_matrices


@pytest.mark.parametrize("scaling", [None, UnitTrace(), (Centering(), UnitTrace())])
@pytest.mark.parametrize("stacked", [False, True])
def test_given_matrices_are_sources_too(scaling, stacked):
    given = np.dstack(KS) if stacked else KS
    fitted = PrecomputedBank(scaling=scaling).fit(given)
    P = np.eye(12) - 1.0 / 12.0
    for source, K in zip(fitted.sources(), KS, strict=True):
        K = P @ K @ P if isinstance(scaling, tuple) else K
        expected = K if scaling is None else K / np.trace(K)
        [(_, block)] = source.block(slice(2, 7), np.array([11, 0]))
        np.testing.assert_allclose(block, expected[2:7][:, [11, 0]], atol=1e-12)


def test_a_bank_for_prediction_has_no_training_matrices():
    with pytest.raises(IndexError, match="no training matrices"):
        PrecomputedBank().fit(KS).for_prediction().sources()


@pytest.mark.parametrize(
    "K",
    [
        np.zeros((5, 5)),
        np.ones((5, 5)),
        (lambda P: P @ KS[1] @ P)(np.eye(12) - 1 / 12),
        1e-12 * KS[0],
        np.diag([1e8, 1.0, 0.0]),
    ],
    ids=["zero", "constant", "centred", "tiny", "badly scaled"],
)
def test_semidefinite_matrices_with_rounding_are_kernels(K):
    K = (K + K.T) / 2.0
    np.testing.assert_array_equal(next(PrecomputedBank().fit([K]).grams()), K)


def test_new_rows_of_another_shape_or_number_are_refused_at_once():
    fitted = PrecomputedBank().fit(KS)
    with pytest.raises(ValueError, match=r"fitted with 3 kernel\(s\), received 2"):
        fitted.cross(ROWS[:2])
    with pytest.raises(
        ValueError, match=r"Kernel 2 has 12 training samples, received rows of shape \(6, 5\)"
    ):
        fitted.cross([ROWS[0], ROWS[1], ROWS[2][:, :5]])
    with pytest.raises(ValueError, match="received 12"):
        fitted.cross(np.stack(ROWS))


def test_views_and_unit_diagonal_are_pointed_elsewhere():
    with pytest.raises(TypeError, match=r"use KernelBank.per_view\(Precomputed\(\)\)"):
        PrecomputedBank().fit(Views({"a": KS[0]}))
    with pytest.raises(ValueError, match=r"Kernel 0 cannot be scaled by UnitDiagonal\(\).*UnitTrace"):
        list(PrecomputedBank(scaling=UnitDiagonal()).fit(KS).grams())


def test_a_precomputed_bank_survives_clone_and_pickle():
    bank = PrecomputedBank(scaling=(Centering(), UnitTrace()))
    assert clone(bank) == bank
    fitted = bank.fit(KS)
    list(fitted.grams())
    for (_, K), (_, L) in zip(
        fitted.cross(ROWS), pickle.loads(pickle.dumps(fitted)).cross(ROWS), strict=True
    ):
        np.testing.assert_array_equal(K, L)


@pytest.mark.parametrize("n", [4, 60])
def test_an_asymmetry_whose_rows_add_up_to_nothing_is_found(n):
    A = np.random.default_rng(0).normal(size=(n, n + 1))
    K, i = A @ A.T + n * np.eye(n), np.arange(n)
    K[i, (i + 1) % n] += 0.5
    K[(i + 1) % n, i] -= 0.5
    with pytest.raises(ValueError, match="not symmetric"):
        list(PrecomputedBank().fit([K]).grams())


N = 40
# Held by reference, packed, and by reference with a rounded sum: packing does not fit.
STORAGES = {
    "as given": {},
    "packed": {"dtype": "float32"},
    "rounded sum": {"dtype": "float32", "memory_limit": unpacked_bytes(N, 6, 4)},
}


@pytest.fixture
def problem():
    own = np.random.default_rng(7)
    return [A @ A.T for A in own.normal(size=(6, N, 8))], np.where(np.arange(N) % 3, 1.0, -1.0)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_fits_enclose_the_conic_optimum_and_leave_the_matrices_as_they_are(problem, storage, C):
    matrices, y = problem
    before = [K.copy() for K in matrices]
    model = MKLClassifier("precomputed", learner=Hinge(C=C), geometry=LpBall(2.0), tol=1e-3, n_jobs=2)
    model.set_params(**STORAGES[storage]).fit(matrices, y)
    optimum = conic_optimum(matrices, y, ("hinge", C), ("lp", 2.0)).value
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)
    assert model.certificate_.relative_gap <= 1e-3
    assert ("as given" in model.storage_.how) == (storage != "packed")
    assert (model.storage_.error > 0.0) == (storage != "as given")
    for K, then in zip(matrices, before, strict=True):
        np.testing.assert_array_equal(K, then)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("geometry", "same"), [(LpBall(2.0), ("lp", 2.0)), (Simplex(), ("simplex",))])
def test_rounding_of_both_triangles_is_evened_out_before_a_fit(problem, storage, geometry, same):
    matrices, y = problem
    off = 1.0 + 1e-9 * np.random.default_rng(8).normal(size=(N, N))
    upset = [K * off for K in matrices]
    model = MKLClassifier("precomputed", geometry=geometry, tol=1e-4, **STORAGES[storage]).fit(upset, y)
    optimum = conic_optimum([(K + K.T) / 2.0 for K in upset], y, ("hinge", 1.0), same).value
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((3, 30), 0.5, r"Kernel 4 is not symmetric: entry \[3, 30\]"),
        ((0, 39), 1e-3, r"Kernel 4 is not symmetric: entry \[0, 39\]"),
        ((3, 30), np.nan, r"Kernel 4 contains nan at \[3, 30\]"),
        ((38, 39), -np.inf, r"Kernel 4 contains -inf at \[38, 39\]"),
        (np.tril_indices(N, -1), 0.0, "Kernel 4 is not symmetric"),
    ],
)
def test_every_model_says_what_is_wrong_with_a_matrix(problem, storage, place, value, message):
    matrices, y = problem
    bad, how = [*matrices[:4], matrices[4].copy(), matrices[5]], {"tol": 1e-3, **STORAGES[storage]}
    bad[4][place] = value
    shared = MKLClassifier("precomputed", multiclass="shared", n_jobs=2, **how)
    fits = [
        lambda: MKLClassifier("precomputed", geometry=LpBall(2.0), n_jobs=2, **how).fit(bad, y),
        lambda: MKLClassifier("precomputed", n_jobs=2, **how).fit(bad, np.arange(N) % 3),
        lambda: shared.fit(bad, np.arange(N) % 3),
        lambda: MKLRegressor("precomputed", **how).fit(bad, y),
        lambda: OneClassMKL("precomputed", **how).fit(bad),
        lambda: FisherMKLClassifier("precomputed", tol=1e-3).fit(bad, y),
        lambda: path(MKLClassifier("precomputed", **how), bad, y, param="learner__C", values=[0.1, 1.0]),
    ]
    for fit in fits:
        with pytest.raises(ValueError, match=message):
            fit()
    assert not hasattr(shared, "kernel_weights_")


@pytest.mark.parametrize(("n", "n_kernels", "tol"), [(1000, 3, 1e-2), (520, 75, 1e-3)])
@pytest.mark.parametrize("place", [(9, 3), (1, 1), (0, 9), (519, 0), (3, 500)])
@pytest.mark.parametrize("what", [np.nan, np.inf])
def test_what_is_no_number_is_named_by_fits_of_many_samples_or_kernels(n, n_kernels, tol, place, what):
    X = np.random.default_rng(0).normal(size=(n, 2))
    K = X @ X.T
    Ks = [K] * (n_kernels - 1) + [K.copy()]
    Ks[-1][place] = Ks[-1][place[::-1]] = what
    with pytest.raises(ValueError, match=rf"Kernel {n_kernels - 1} contains (nan|inf)"):
        MKLClassifier("precomputed", geometry=Simplex(), tol=tol).fit(Ks, np.arange(n) % 2)
