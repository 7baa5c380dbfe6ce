"""Sums, products, powers, multiples, columns and normalised kernels, and those of given distances and functions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave import KernelBank, Views
from kernelweave.kernels import (
    ChiSquared,
    ExpDistance,
    FromFunction,
    Gaussian,
    Jaccard,
    Linear,
    Multiple,
    OnColumns,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Spectrum,
    Sum,
)

RNG = np.random.default_rng(6)
X, NEW = RNG.normal(size=(15, 4)), RNG.normal(size=(6, 4))
A, B = Gaussian(gamma=0.3), Polynomial(degree=2)


@pytest.mark.parametrize(
    ("kernel", "of"),
    [
        (A + B, lambda a, b: a + b),
        (A * B, lambda a, b: a * b),
        (B**3, lambda _, b: b**3),
        (2.5 * A, lambda a, _: 2.5 * a),
        (A * 2, lambda a, _: 2.0 * a),
        (A + 2.0 * B * A, lambda a, b: a + 2.0 * b * a),
        (A + B + A, lambda a, b: a + b + a),
    ],
)
def test_operators_do_entry_by_entry_what_they_say(kernel, of):
    for rows in (X, NEW):
        np.testing.assert_allclose(kernel(rows, X), of(A(rows, X), B(rows, X)), rtol=1e-12)


def test_operators_make_parts():
    assert Sum(A, B) == A + B
    assert Product(A, B) == A * B
    assert Multiple(A, 2.0) == 2.0 * A
    assert Power(A, 2) == A**2
    assert A.on("age") == OnColumns(A, "age")
    assert A + B != B + A
    for wrong in (lambda: A + 1.0, lambda: A * "b", lambda: "b" * A):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    ("kernel", "label"),
    [
        ((Linear() + Spectrum(2)) * Jaccard(), "(linear + spectrum(k=2)) * jaccard"),
        (Linear() + Spectrum(2) * Jaccard(), "linear + spectrum(k=2) * jaccard"),
        ((Linear() * Jaccard()) ** 2, "(linear * jaccard)^2"),
        (0.5 * (Linear() + Jaccard()), "0.5 * (linear + jaccard)"),
        ((2.0 * Linear()).on(["age", "size"]), "(2 * linear)[age, size]"),
        (Linear().on(slice(0, 3)), "linear[0:3]"),
        (Linear().on(slice(None, None, 2)), "linear[::2]"),
        ((Linear() + Jaccard()).normalized(), "normalized(linear + jaccard)"),
        (Linear().repaired("flip"), "flip(linear)"),
    ],
)
def test_labels_read_like_formulas(kernel, label):
    assert kernel.label == label


def test_resolving_learns_the_open_numbers_of_each_part_on_its_own_columns():
    kernel = Gaussian().on([0, 1]) * Gaussian(scale=2.0).on([3]) + 2.0 * ChiSquared().on(2) ** 2
    rows = np.abs(X)
    resolved = kernel.resolve(rows)
    assert resolved.first.first.kernel.mean_ == Gaussian().resolve(rows[:, :2]).mean_
    assert resolved.first.second.kernel.mean_ == Gaussian().resolve(rows[:, 3:]).mean_
    assert kernel.first.first.kernel.mean_ is None
    with pytest.raises(ValueError, match="has not learnt its gamma"):
        kernel(rows)
    other = kernel.resolve(np.abs(NEW))
    assert other != resolved


def test_nested_parameters_are_reached_and_cloned():
    kernel = Spectrum(3).on("dna") * (Gaussian() + Linear())
    kernel.set_params(first__kernel__k=(1, 2), second__first__gamma=0.5)
    assert kernel == Spectrum((1, 2)).on("dna") * (Gaussian(gamma=0.5) + Linear())
    assert clone(kernel) == kernel
    assert clone(kernel).first is not kernel.first


def test_sparse_rows_are_read_where_all_parts_read_them():
    S = sparse.random_array((12, 9), density=0.4, rng=RNG, format="csr")
    kernel = (Linear() + Gaussian(gamma=0.2)) * Polynomial().on([0, 3, 5])
    np.testing.assert_allclose(kernel(S), kernel(S.toarray()), rtol=1e-12)
    assert not (Linear() + ChiSquared()).accepts_sparse
    with pytest.raises(TypeError, match="does not accept a sparse matrix"):
        (Linear() + ChiSquared(gamma=1.0))(S)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: Sum(Linear(), 3)(X), TypeError, "Sum is made of kernels such as Gaussian"),
        (lambda: (Linear() ** 0.5)(X), ValueError, "degree=0.5; it has to be a whole number >= 1"),
        (lambda: (-1.0 * Linear())(X), ValueError, "factor=-1.0"),
        (lambda: (Linear() + Gaussian(gamma=-1.0))(X), ValueError, "gamma=-1.0"),
        (
            lambda: (Linear() + Precomputed())(X),
            ValueError,
            "mixes kernels of given matrices with kernels of",
        ),
        (lambda: Precomputed().on(0)(X), ValueError, "reads a whole block"),
        (lambda: Precomputed().normalized()(X @ X.T), ValueError, "cannot be normalised"),
        (lambda: Linear().on("age")(X), ValueError, "does not know which column is 'age'"),
        (lambda: Linear().on(4)(X), ValueError, "asks for column 4 of 4: they are 0 to 3"),
        (lambda: Linear().on([])(X), TypeError, r"a slice of positions, received \[\]"),
        (lambda: Linear().on(1.5)(X), TypeError, "received 1.5"),
        (
            lambda: Linear().repaired("mend")(X),
            ValueError,
            "'mend' as repair; it has to be one of clip, flip, shift",
        ),
        (lambda: ExpDistance(form="cubic")(X), ValueError, "form='cubic'; it has to be one of exp, gaussian"),
    ],
)
def test_what_cannot_be_used_is_named(use, error, message):
    with pytest.raises(error, match=message):
        use()


@pytest.mark.parametrize(
    ("form", "of"),
    [
        ("exp", lambda t: np.exp(-t)),
        ("gaussian", lambda t: np.exp(-(t**2))),
        ("inverse", lambda t: 1.0 / (1.0 + t)),
        ("inverse_square", lambda t: 1.0 / (1.0 + t**2)),
    ],
)
def test_given_distances_have_every_form(form, of):
    D = np.linalg.norm(X[:, None] - X, axis=2)
    mean = D.sum() / (15 * 14)
    np.testing.assert_allclose(ExpDistance(form=form).resolve(D)(D), of(D / mean), rtol=1e-12)
    np.testing.assert_allclose(ExpDistance(gamma=2.0, form=form)(D), of(D / 2.0), rtol=1e-12)


def test_the_forms_of_given_distances_are_those_of_features():
    D = np.linalg.norm(X[:, None] - X, axis=2)
    np.testing.assert_allclose(
        ExpDistance(gamma=2.0, form="gaussian")(D), Gaussian(gamma=0.25)(X), rtol=1e-10
    )


class Graph:
    """A graph as users have them: an object that numpy knows nothing of."""

    def __init__(self, edges):
        self.edges = frozenset(edges)

    def __len__(self):
        return len(self.edges)


def common_edges(X, Z):
    return np.array([[float(len(x.edges & z.edges)) for z in Z] for x in X])


def test_a_function_gets_objects_a_few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr("kernelweave.kernels.given.ENTRIES", 40)
    graphs = [Graph([(int(a), int(b)) for a, b in RNG.integers(0, 4, (5, 2))]) for _ in range(17)]
    calls = []

    def counted(X, Z):
        assert X.ndim == Z.ndim == 1
        calls.append(len(X))
        return common_edges(X, Z)

    kernel = FromFunction(counted)
    expected = [[len(x.edges & z.edges) for z in graphs] for x in graphs]
    np.testing.assert_array_equal(kernel(graphs), expected)
    assert max(calls) * 17 <= 40
    y = np.arange(17) % 2
    fitted = KernelBank([("g", kernel)]).fit(Views({"g": np.array(graphs, dtype=object)}))
    np.testing.assert_array_equal(next(fitted.grams()), expected)
    assert y.size == fitted.n_samples


def test_a_function_gets_sparse_rows_as_they_are():
    S = sparse.random_array((12, 9), density=0.4, rng=RNG, format="csr")

    def product(X, Z):
        assert sparse.issparse(X)
        return X @ Z.T

    np.testing.assert_allclose(FromFunction(product)(S), (S @ S.T).toarray(), rtol=1e-12)
    fitted = KernelBank([FromFunction(product)]).fit(S)
    np.testing.assert_allclose(next(fitted.grams()), (S @ S.T).toarray(), rtol=1e-12)


def test_functions_of_objects_are_checked_to_be_kernels():
    graphs = [Graph([(0, 1)]), Graph([(1, 2)]), Graph([(0, 1), (1, 2)])]
    with pytest.raises(ValueError, match="is not symmetric"):
        FromFunction(lambda X, Z: np.array([[len(x) for _ in Z] for x in X]), name="skew")(graphs)
    with pytest.raises(ValueError, match=r"is indefinite.*kernel.repaired"):
        FromFunction(lambda X, Z: -common_edges(X, Z), name="minus")(graphs)
