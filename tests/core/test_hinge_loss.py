"""The hinge loss at its best bias against all kinks."""

import numpy as np
import pytest

from kernelweave import _core


@pytest.mark.parametrize("n", [1, 2, 11, 13, 60, 700])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("positive", [0.0, 0.1, 0.5, 1.0])
def test_the_hinge_loss_is_that_of_the_best_kink(rng, n, ties, positive):
    for _ in range(5):
        f = rng.integers(-3, 4, size=n) / 2.0 if ties else rng.normal(size=n)
        y = np.where(rng.random(n) < positive, 1.0, -1.0)
        C = rng.integers(0, 3, size=n).astype(float) if ties else rng.random(n)
        C[0] += 0.25
        bias, value = _core.hinge_loss(f, y, C)
        losses = np.array([C @ np.maximum(0.0, 1.0 - y * (f + b)) for b in y - f])
        assert value == pytest.approx(C @ np.maximum(0.0, 1.0 - y * (f + bias)), rel=1e-12, abs=1e-12)
        assert value == pytest.approx(losses.min(), rel=1e-9, abs=1e-9)
        best = (y - f)[losses <= losses.min() + 1e-10]
        assert best.min() - 1e-12 <= bias <= best.max() + 1e-12
        if 0.0 < (C[y > 0]).sum() < C.sum() and ties:  # a flat stretch is told by its ends
            used = np.isin(y - f, (y - f)[C > 0.0]) & (losses <= losses.min() + 1e-10)
            assert bias == pytest.approx(0.5 * ((y - f)[used].min() + (y - f)[used].max()))


def test_the_hinge_loss_of_nan_is_nan():
    f, y = np.zeros(40), np.where(np.arange(40) % 2, 1.0, -1.0)
    for i in (0, 13, 39):
        broken = f.copy()
        broken[i] = np.nan
        assert np.isnan(_core.hinge_loss(broken, y, np.ones(40))[1])


@pytest.mark.parametrize("sizes", [(2, 2, 3), (2, 3, 2), (0, 0, 0)])
def test_there_is_one_entry_per_sample(sizes):
    with pytest.raises(ValueError, match="one entry per sample"):
        _core.hinge_loss(*(np.ones(size) for size in sizes))
