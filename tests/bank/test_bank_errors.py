"""Bad data and bad banks: one sentence that says what was received and what would work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from kernelweave.bank import Entry, KernelBank, Views
from kernelweave.kernels import (
    ChiSquared,
    Gaussian,
    Linear,
    Polynomial,
    Precomputed,
    UnitDiagonal,
    UnitTrace,
)

X = np.random.default_rng(0).normal(size=(6, 3))
FRAME = pd.DataFrame(X, columns=["age", "bmi", "bp"])


def spoilt(value):
    bad = X.copy()
    bad[4, 1] = value
    return bad


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (X[0], ValueError, r"X has to be 2-D .* shape \(3,\)\. Reshape your data"),
        (X[:, :, None], ValueError, r"shape \(6, 3, 1\)"),
        (X[:0], ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\)"),
        (X[:, :0], ValueError, r"0 feature\(s\) \(shape=\(6, 0\)\) .*while a minimum of 1 is required"),
        (spoilt(-np.inf), ValueError, "Column 1 of X contains inf in row 4"),
        (np.where(np.arange(6)[:, None] == 4, np.nan, X), ValueError, "contains NaN in row 4"),
        (pl.DataFrame({"a": [1.0, None]}), ValueError, "Column 'a' of X contains NaN in row 1"),
        (sparse.csr_matrix(spoilt(np.nan)), ValueError, "Column 1 of X contains NaN in row 4"),
        (pd.DataFrame({"z": [1j, 2.0]}), ValueError, "Column 'z' of X is not numeric"),
        (X + 1j, ValueError, "Complex data not supported"),
        (np.array([[1.0, 2j]], dtype=object), ValueError, "Column 1 of X .* Complex data not supported"),
        (
            np.array([[1.0, {1}], [1.0, "a"]], dtype=object),
            TypeError,
            "Column 1 of X holds sets in some rows",
        ),
        (np.array([[{"a": 1}]], dtype=object), TypeError, "argument must be .* string.* number"),
        (
            Views({"mri": pd.DataFrame(spoilt(np.inf), columns=["a", "b", "c"])}),
            ValueError,
            "Column 'b' of view 'mri' contains inf",
        ),
    ],
)
def test_data_that_cannot_be_used_are_refused_by_place(data, error, message):
    with pytest.raises(error, match=message):
        KernelBank([Linear()]).fit(data)


def test_objects_that_are_numbers_are_numbers():
    np.testing.assert_allclose(next(KernelBank([Linear()]).fit(X.astype(object)).grams()), X @ X.T)


@pytest.mark.parametrize(
    ("bank", "data", "error", "message"),
    [
        (KernelBank([]), X, ValueError, "has no kernels"),
        (KernelBank.per_feature(widths=(), degrees=()), X, ValueError, "has no kernels"),
        (KernelBank(Linear()), X, TypeError, "list of kernels, received Linear.*put it in a list"),
        (KernelBank(["gaussian"]), X, TypeError, "An entry of a bank is a kernel, .* received 'gaussian'"),
        (KernelBank([Gaussian]), X, TypeError, "An entry of a bank is a kernel"),
        (KernelBank([Entry("gaussian")]), X, TypeError, "An entry of a bank is a kernel"),
        (KernelBank.per_view("gaussian"), X, TypeError, "kernels such as Gaussian"),
        (KernelBank([Linear()], scaling="trace"), X, TypeError, "A scaling is UnitTrace"),
        (KernelBank([("rna", Linear())]), X, ValueError, "no view 'rna'; declare it with views="),
        (
            KernelBank([("rnb", Linear())]),
            Views({"rna": X}),
            ValueError,
            "no view 'rnb'; the views are 'rna'",
        ),
        (KernelBank([("b", Linear())], {"a": [0]}), X, ValueError, "no view 'b'; the views are 'a'"),
        (KernelBank(views={}), X, ValueError, "at least one view, received {}"),
        (KernelBank(views=["age"]), X, ValueError, r"dict of name to columns"),
        (
            KernelBank(views={"a": ["agee"]}),
            FRAME,
            ValueError,
            r"X \(for view 'a'\) has no column 'agee'.*'age'",
        ),
        (
            KernelBank(views={"a": [0]}),
            Views({"rna": X}),
            ValueError,
            "declares the views a of a table, but X is",
        ),
        (KernelBank([Entry(Linear(), columns=[0])]), Views({"rna": X}), ValueError, "of which view.*'rna'"),
        (KernelBank([Gaussian(width=-1.0)]), X, ValueError, "Gaussian cannot use width=-1.0"),
        (
            KernelBank([Entry(Gaussian(width=-1.0), name="a")]),
            X,
            ValueError,
            "Gaussian cannot use width=-1.0",
        ),
        (
            KernelBank([ChiSquared()]),
            sparse.csr_matrix(X),
            TypeError,
            "chi_squared.* does not accept a sparse",
        ),
        (KernelBank([Entry(Precomputed(), columns=[0])]), X, ValueError, "reads a whole block"),
        (KernelBank([("a", Precomputed())], {"a": [0]}), X, ValueError, "reads a whole block"),
        (KernelBank([Precomputed()]), Views({"rna": X}), ValueError, "needs the name of a view"),
        (
            KernelBank([("k", Precomputed())]),
            Views({"k": X}),
            ValueError,
            "6 training samples, received 3 columns",
        ),
    ],
)
def test_banks_that_do_not_fit_the_data_are_refused(bank, data, error, message):
    with pytest.raises(error, match=message):
        bank.fit(data)


def test_a_negative_feature_is_reported_when_the_chi_squared_kernel_is_computed():
    with pytest.raises(ValueError, match="features >= 0"):
        list(KernelBank([ChiSquared()]).fit(X).grams())


def test_a_kernel_that_overflows_is_named():
    fitted = KernelBank([Linear(), Polynomial(degree=3)]).fit(X * 1e120)
    with pytest.raises(ValueError, match=r"Kernel 'x·polynomial\(degree=3\)' is not finite.*standardise"):
        list(fitted.grams())
    with pytest.raises(ValueError, match=r"'x·gaussian.* is not finite"):
        list(KernelBank([Gaussian()]).fit(X * 1e200).grams())


def test_a_kernel_that_overflows_on_new_samples_is_named():
    fitted, columns = KernelBank([Polynomial(degree=3)]).fit(X), np.arange(len(X))
    with pytest.raises(ValueError, match=r"Kernel 'x·polynomial\(degree=3\)' is not finite.*standardise"):
        fitted.products(X * 1e120, columns, np.ones((len(X), 1)), np.array([0]))
    with pytest.raises(ValueError, match="is not finite"):
        fitted.weighted_products(X * 1e120, columns, np.ones((len(X), 1)), np.ones(1))


def test_a_kernel_whose_rows_of_new_samples_overflow_is_named():
    with pytest.raises(ValueError, match="is not finite"):
        list(KernelBank([Polynomial(degree=3)]).fit(X).cross(X * 1e120))


def test_a_scaling_that_needs_the_diagonal_cannot_be_used_on_a_precomputed_view():
    fitted = KernelBank([("k", Precomputed())], scaling=(UnitTrace(), UnitDiagonal())).fit(
        Views({"k": X @ X.T})
    )
    with pytest.raises(
        ValueError, match=r"'k·precomputed' cannot be scaled by Chain.*does not show k\(x, x\)"
    ):
        list(fitted.grams())


def test_an_asymmetric_or_indefinite_view_is_refused():
    for bad, message in ((np.triu(np.ones((3, 3))), "not symmetric"), (-np.eye(3), "indefinite")):
        with pytest.raises(ValueError, match=message):
            list(KernelBank([("k", Precomputed())]).fit(Views({"k": bad})).grams())


VIEWS = Views({"rna": X, "mri": FRAME})


@pytest.mark.parametrize(
    ("train", "new", "error", "message"),
    [
        (X, X[:, :2], ValueError, "X has 2 features, but the bank was fitted with 3"),
        (X, X[0], ValueError, "Reshape your data"),
        (X, np.full((1, 3), np.nan), ValueError, "Row 0 of X lacks view 'x'"),
        (X, spoilt(np.inf), ValueError, "Column 1 of X contains inf in row 4"),
        (X, VIEWS, TypeError, r"fitted on one table, received Views"),
        (VIEWS, X, TypeError, "needs view 'rna', received ndarray"),
        (VIEWS, Views({"rna": X}), ValueError, "no view 'mri', which the bank was fitted with; it has rna"),
        (VIEWS, Views({"rna": X, "mri": X[:, :2]}), ValueError, "view 'mri' has 2 features"),
        (FRAME, FRAME.rename(columns={"bp": "bpp"}), ValueError, "no column 'bp', .* it has 'bpp'"),
        (
            FRAME,
            FRAME.assign(bp="high"),
            ValueError,
            "Column 'bp' of X held numbers .* holds words now .'high'",
        ),
    ],
)
def test_new_data_unlike_the_training_data_are_refused_before_anything_is_computed(
    train, new, error, message
):
    fitted = KernelBank.per_view(Linear()).fit(train)
    with pytest.raises(error, match=message):
        fitted.cross(new)


def test_new_rows_of_a_precomputed_view_need_one_column_per_training_sample():
    fitted = KernelBank([("k", Precomputed())]).fit(Views({"k": X @ X.T}))
    with pytest.raises(
        ValueError, match="view 'k' holds values against 6 training samples, received 4 columns"
    ):
        fitted.cross(Views({"k": np.ones((2, 4))}))
