"""What every scaling promises; a scaling class without a row in the table fails the first test."""

from __future__ import annotations

import pickle
from inspect import isabstract

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave.kernels import Centering, Chain, Scaling, UnitDiagonal, UnitMean, UnitTrace, UnitVariance
from kernelweave.kernels.fitted_scaling import FittedScaling, ScaledForm
from kernelweave.kernels.scaling import as_scaling

CASES = {
    UnitTrace: [UnitTrace()],
    UnitMean: [UnitMean()],
    UnitDiagonal: [UnitDiagonal()],
    UnitVariance: [UnitVariance()],
    Centering: [Centering()],
    Chain: [
        Chain(()),
        Chain((Centering(), UnitTrace())),
        Chain((UnitDiagonal(), Centering())),
        Chain((UnitDiagonal(), UnitVariance())),
        Chain((Centering(), UnitDiagonal(), UnitMean())),
    ],
}
SCALINGS = [pytest.param(scaling, id=repr(scaling)) for cases in CASES.values() for scaling in cases]

rng = np.random.default_rng(2)
TRAIN, NEW = rng.normal(1.0, 1.0, (15, 5)), rng.normal(0.0, 2.0, (6, 5))
K, ROWS, DIAGONAL = TRAIN @ TRAIN.T, NEW @ TRAIN.T, (NEW**2).sum(axis=1)


def form_of_new(fitted):
    return fitted.forms(len(TRAIN), len(NEW), lambda: DIAGONAL, lambda V: ROWS @ V)[0]


def subclasses(base):
    for kind in base.__subclasses__():
        if not isabstract(kind):
            yield kind
        yield from subclasses(kind)


def test_every_scaling_has_a_row_in_the_table():
    assert set(subclasses(Scaling)) == set(CASES)


def test_every_fitted_scaling_is_reached_by_the_table():
    reached = set()
    for cases in CASES.values():
        for scaling in cases:
            reached.add(type(scaling.fit(K)))
    assert reached == set(subclasses(FittedScaling))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_training_gram_stays_exactly_symmetric_positive_and_float64(scaling):
    scaled = scaling.fit(K).train(K)
    np.testing.assert_array_equal(scaled, scaled.T)
    assert scaled.dtype == np.float64
    assert np.linalg.eigvalsh(scaled)[0] >= -1e-10 * np.trace(scaled)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_training_samples_given_as_new_rows_get_the_training_gram(scaling):
    fitted = scaling.fit(K)
    np.testing.assert_allclose(fitted.rows(K, np.diagonal(K)), fitted.train(K), atol=1e-12)
    new, training = fitted.forms(len(K), len(K), lambda: np.diagonal(K), lambda V: K @ V)
    for form in (new, training):
        np.testing.assert_allclose(form.diagonal(np.diagonal(K)), np.diagonal(fitted.train(K)), atol=1e-12)
    np.testing.assert_allclose(new.values(K, new), fitted.train(K), atol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_new_row_does_not_depend_on_the_other_new_rows(scaling):
    fitted = scaling.fit(K)
    together = fitted.rows(ROWS, DIAGONAL)
    for i in range(len(ROWS)):
        np.testing.assert_allclose(
            fitted.rows(ROWS[i : i + 1], DIAGONAL[i : i + 1])[0], together[i], rtol=1e-12
        )


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_whole_of_training_and_new_samples_stays_a_positive_kernel(scaling):
    fitted = scaling.fit(K)
    new, rows = form_of_new(fitted), fitted.rows(ROWS, DIAGONAL)
    whole = np.block([[fitted.train(K), rows.T], [rows, new.values(NEW @ NEW.T, new)]])
    assert np.linalg.eigvalsh(whole)[0] >= -1e-9 * np.trace(whole)
    np.testing.assert_allclose(np.diagonal(whole)[len(K) :], new.diagonal(DIAGONAL), atol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_nothing_is_written_to_and_the_fit_is_a_function_of_the_gram_alone(scaling):
    gram, rows, diagonal = K.copy(), ROWS.copy(), DIAGONAL.copy()
    before = pickle.dumps(scaling)
    fitted = scaling.fit(gram)
    first = fitted.rows(rows, diagonal)
    fitted.train(gram)
    fitted.forms(len(gram), len(rows), lambda: diagonal, lambda V: rows @ V)
    for now, then in ((gram, K), (rows, ROWS), (diagonal, DIAGONAL)):
        np.testing.assert_array_equal(now, then)
    assert pickle.dumps(scaling) == before
    np.testing.assert_array_equal(scaling.fit(gram).rows(rows, diagonal), first)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_diagonal_is_asked_for_exactly_when_it_is_needed(scaling):
    fitted = scaling.fit(K)
    if fitted.needs_diagonal:
        with pytest.raises(ValueError, match="needs k"):
            fitted.rows(ROWS)
    else:
        np.testing.assert_array_equal(fitted.rows(ROWS), fitted.rows(ROWS, DIAGONAL))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_rows_against_some_training_samples_are_those_columns(scaling):
    fitted, columns = scaling.fit(K), np.array([4, 1, 9])
    training = fitted.on_training(ScaledForm.plain(len(K)))
    few = form_of_new(fitted).values(ROWS[:, columns], training.at(columns))
    np.testing.assert_allclose(few, fitted.rows(ROWS, DIAGONAL)[:, columns], rtol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_scaling_survives_clone_and_pickle(scaling):
    assert clone(scaling) == scaling
    assert type(scaling)(**scaling.get_params(deep=False)) == scaling
    fitted = pickle.loads(pickle.dumps(scaling.fit(K)))
    np.testing.assert_array_equal(fitted.rows(ROWS, DIAGONAL), scaling.fit(K).rows(ROWS, DIAGONAL))


def test_a_tuple_is_a_chain_and_none_is_nothing():
    assert as_scaling((Centering(), UnitTrace())) == Chain((Centering(), UnitTrace()))
    assert as_scaling([UnitTrace()]) == Chain((UnitTrace(),))
    assert as_scaling(None) is None
    for wrong in ("trace", UnitTrace, (UnitTrace(), "trace")):
        with pytest.raises(TypeError, match="A scaling is UnitTrace"):
            as_scaling(wrong)
