"""Scalings against explicit feature maps: what happens to the vectors is what must happen to the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.kernels import Centering, Chain, UnitDiagonal, UnitMean, UnitTrace, UnitVariance
from kernelweave.kernels.fitted_scaling import ScaledForm
from kernelweave.kernels.scaling import TrainingGram


@pytest.fixture
def features():
    """Training and new samples as explicit vectors; the new ones have another mean, size and number."""
    rng = np.random.default_rng(4)
    return rng.normal(2.0, 1.0, (25, 6)), rng.normal(-3.0, 5.0, (8, 6))


def form_of(fitted, train, new):
    """How new samples are scaled; no matrix of theirs is formed."""
    return fitted.forms(len(train), len(new), lambda: (new**2).sum(axis=1), lambda V: new @ (train.T @ V))[0]


def scaled(scaling, train, new):
    fitted = scaling.fit(train @ train.T)
    diagonal = (new**2).sum(axis=1)
    return (
        fitted.train(train @ train.T),
        fitted.rows(new @ train.T, diagonal),
        form_of(fitted, train, new).diagonal(diagonal),
    )


def agrees(scaling, train, new, train_after, new_after):
    K, rows, diagonal = scaled(scaling, train, new)
    np.testing.assert_allclose(K, train_after @ train_after.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rows, new_after @ train_after.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(diagonal, (new_after**2).sum(axis=1), rtol=1e-9, atol=1e-12)
    fitted = scaling.fit(train @ train.T)
    few, others = form_of(fitted, train, new[:3]), form_of(fitted, train, new[3:])
    between = few.values(new[:3] @ new[3:].T, others)
    np.testing.assert_allclose(between, new_after[:3] @ new_after[3:].T, rtol=1e-9, atol=1e-12)


def test_centering_with_the_means_of_the_new_samples_would_be_something_else(features):
    train, new = features
    _, rows, _ = scaled(Centering(), train, new)
    wrong = (new - new.mean(axis=0)) @ (train - train.mean(axis=0)).T
    assert np.abs(rows - wrong).max() > 1.0


def test_centering_is_pkp(features):
    train, new = features
    K, _, _ = scaled(Centering(), train, new)
    P = np.eye(25) - np.ones((25, 25)) / 25
    np.testing.assert_allclose(K, P @ (train @ train.T) @ P, atol=1e-10)
    np.testing.assert_allclose(K.sum(axis=0), 0.0, atol=1e-9)


SIZES = {
    UnitTrace: np.trace,
    UnitMean: lambda K: np.diagonal(K).mean(),
    UnitVariance: lambda K: np.diagonal(K).mean() - K.mean(),
    UnitDiagonal: np.diagonal,
}


@pytest.mark.parametrize("scaling", SIZES, ids=lambda kind: kind.__name__)
def test_what_a_scaling_evens_out_is_one_for_training_samples(features, scaling):
    K, _, diagonal = scaled(scaling(), *features)
    np.testing.assert_allclose(SIZES[scaling](K), 1.0, rtol=1e-12)
    if scaling is UnitDiagonal:
        np.testing.assert_allclose(diagonal, 1.0, rtol=3e-16)


ORDERS = [
    (),
    (Centering(),),
    (UnitDiagonal(),),
    (UnitTrace(),),
    (UnitMean(),),
    (UnitVariance(),),
    (Centering(), UnitDiagonal(), Centering(), UnitTrace()),
    (Centering(), UnitDiagonal()),
    (UnitDiagonal(), Centering()),
    (UnitDiagonal(), Centering(), UnitDiagonal()),
    (Centering(), UnitTrace(), Centering()),
    (UnitVariance(), UnitDiagonal(), UnitMean()),
]


def moved(step, train, new):
    """What one scaling does to the vectors."""
    if isinstance(step, Centering):
        return train - train.mean(axis=0), new - train.mean(axis=0)
    if isinstance(step, UnitDiagonal):
        return tuple(part / np.linalg.norm(part, axis=1, keepdims=True) for part in (train, new))
    squared = {
        UnitTrace: (train**2).sum(),
        UnitMean: (train**2).sum(axis=1).mean(),
        UnitVariance: train.var(axis=0).sum(),
    }
    return train / np.sqrt(squared[type(step)]), new / np.sqrt(squared[type(step)])


@pytest.mark.parametrize("steps", ORDERS, ids=str)
def test_scalings_in_any_order_do_to_the_kernel_what_they_do_to_the_vectors(features, steps):
    after = features
    for step in steps:
        after = moved(step, *after)
    agrees(Chain(steps), *features, *after)


@pytest.mark.parametrize("steps", ORDERS, ids=str)
def test_a_scaling_learns_from_products_what_it_learns_from_the_matrix(features, steps):
    train, new = features
    K = train @ train.T
    gram = TrainingGram((train**2).sum(axis=1), lambda V: train @ (train.T @ V), ScaledForm.plain(25))
    learnt, fitted = Chain(steps).learn(gram), Chain(steps).fit(K)
    np.testing.assert_allclose(learnt.train(K), fitted.train(K), atol=1e-12)
    rows = [one.rows(new @ train.T, (new**2).sum(axis=1)) for one in (learnt, fitted)]
    np.testing.assert_allclose(*rows, atol=1e-10)


def test_samples_at_the_origin_stay_there_under_unit_diagonal():
    train = np.array([[3.0, 4.0], [0.0, 0.0]])
    K, rows, diagonal = scaled(UnitDiagonal(), train, np.array([[0.0, 0.0], [2.0, 0.0]]))
    np.testing.assert_allclose(K, [[1.0, 0.0], [0.0, 0.0]], rtol=3e-16)
    np.testing.assert_allclose(rows, [[0.0, 0.0], [0.6, 0.0]])
    np.testing.assert_allclose(diagonal, [0.0, 1.0], rtol=3e-16)


@pytest.mark.parametrize("scaling", [UnitTrace(), UnitMean(), UnitVariance(), UnitDiagonal(), Centering()])
def test_a_zero_kernel_stays_zero(scaling):
    fitted = scaling.fit(np.zeros((4, 4)))
    np.testing.assert_array_equal(fitted.train(np.zeros((4, 4))), 0.0)
    np.testing.assert_array_equal(fitted.rows(np.zeros((2, 4)), np.zeros(2)), 0.0)


@pytest.mark.parametrize("value", [0.1, 1.0, 1e9 / 7.0])
def test_a_constant_kernel_is_exactly_zero_once_centred_so_that_rounding_is_never_blown_up(value):
    constant = np.full((9, 9), value)
    chain = Chain((Centering(), UnitTrace())).fit(constant)
    np.testing.assert_array_equal(chain.train(constant), 0.0)
    new = np.outer(np.random.default_rng(0).normal(size=20), np.full(9, value))  # centred samples are all 0
    np.testing.assert_array_equal(chain.rows(new), 0.0)
    form, _ = chain.forms(9, 20, lambda: new[:, 0] ** 2 / value, lambda V: new @ V)
    np.testing.assert_array_equal(form.values(new[:, :1] @ new[:, :1].T, form), 0.0)


@pytest.mark.parametrize("value", [0.1, 1.0, 1e9 / 7.0])
def test_unit_variance_leaves_a_kernel_without_variance_as_it_is(value):
    constant = np.full((9, 9), value)
    np.testing.assert_array_equal(UnitVariance().fit(constant).train(constant), constant)


def test_a_training_sample_at_the_mean_has_zero_rows_after_centring_and_unit_diagonal():
    train = np.array([[0.1, 0.3], [0.5, 0.7], [0.3, 0.5]])  # the third is the mean of all
    K, _, diagonal = scaled(Chain((Centering(), UnitDiagonal())), train, train[2:])
    np.testing.assert_array_equal(K[2], 0.0)
    np.testing.assert_array_equal(diagonal, 0.0)
    np.testing.assert_allclose(K[:2, :2], [[1.0, -1.0], [-1.0, 1.0]], rtol=1e-12)


@pytest.fixture
def form(features):
    """A form with everything in it, and the matrix it stands for."""
    train, _ = features
    K = train @ train.T
    fitted = Chain((UnitDiagonal(), Centering(), UnitDiagonal(), Centering())).fit(K)
    made = fitted.on_training(ScaledForm.plain(25))
    assert made.common_factor is None
    assert len(made.shifts) == 2
    return K, made, fitted.train(K)


def test_a_form_says_the_scaled_values_without_the_scaled_matrix(form):
    K, made, scaled_K = form
    np.testing.assert_allclose(made.values(K, made), scaled_K, atol=1e-13)
    np.testing.assert_allclose(made.diagonal(np.diagonal(K)), np.diagonal(scaled_K), atol=1e-13)
    V = np.random.default_rng(0).normal(size=(25, 3))
    np.testing.assert_allclose(made.products(lambda W: K @ W, made, V), scaled_K @ V, atol=1e-12)


@pytest.mark.parametrize("rows", [slice(3, 9), np.array([7, 1, 20]), slice(0, 0)], ids=str)
def test_the_form_of_some_samples_is_part_of_the_form(form, rows):
    K, made, scaled_K = form
    np.testing.assert_allclose(made.at(rows).values(K[rows], made), scaled_K[rows], atol=1e-13)
    plain = ScaledForm.plain(25).times(2.0).at(rows)
    assert plain.factors.shape == K[rows, 0].shape
    assert plain.common_factor == (4.0 if plain.factors.size else 1.0)


def test_forms_are_multiplied_and_shifted_sample_by_sample(form):
    K, made, scaled_K = form
    f, u = np.linspace(0.5, 2.0, 25), np.linspace(-1.0, 1.0, 25)
    expected = np.outer(f, f) * scaled_K - u[:, None] - u
    changed = made.times(f).minus(u)
    np.testing.assert_allclose(changed.values(K, changed), expected, atol=1e-12)
    np.testing.assert_allclose(made.times(3.0).values(K, made.times(3.0)), 9.0 * scaled_K, atol=1e-12)
    assert ScaledForm.plain(25).times(3.0).common_factor == 9.0
    assert ScaledForm.plain(25).times(f).common_factor is None
    assert ScaledForm.plain(25).times(np.full(25, 3.0)).common_factor == 9.0


def test_a_plain_form_hands_out_the_matrix_itself(form):
    K, *_ = form
    plain = ScaledForm.plain(25)
    assert plain.values(K, plain) is K
    assert plain.factors.base.size == 1  # one number in memory


def test_products_of_new_samples_with_the_mean_are_all_that_centring_asks_for(features):
    train, new = features
    asked = []

    def product(V):
        asked.append(V.shape)
        return new @ (train.T @ V)

    fitted = Chain((Centering(), UnitTrace())).fit(train @ train.T)
    made, training = fitted.forms(25, 8, lambda: pytest.fail("no k(x, x) is needed"), product)
    assert asked == [(25, 1)]
    np.testing.assert_allclose(made.values(new @ train.T, training), fitted.rows(new @ train.T), atol=1e-12)
    assert not fitted.needs_diagonal
