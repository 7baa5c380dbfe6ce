"""What is drawn has the distribution that is published."""

import numpy as np
import pytest
from tests.datasets.data import load_or_skip

from kernelweave.datasets import (
    corrupted_views,
    g241c,
    g241d,
    overlapping_gaussians,
    privileged_toy,
    ringnorm,
    with_noise_features,
)


def test_ringnorm_is_a_ring_around_a_shifted_heap():
    data = ringnorm(20_000, random_state=0)
    ring, heap = data.X[data.y > 0], data.X[data.y < 0]
    np.testing.assert_allclose(ring.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(ring.std(axis=0), 2.0, atol=0.06)
    np.testing.assert_allclose(heap.mean(axis=0), 2 / np.sqrt(20), atol=0.05)
    np.testing.assert_allclose(heap.std(axis=0), 1.0, atol=0.04)


def test_ringnorm_looks_like_the_file():
    file, drawn = load_or_skip("ringnorm"), ringnorm(7400, random_state=1)
    for sign in (-1, 1):
        a, b = file.X[file.y == sign], drawn.X[drawn.y == sign]
        # the label that is the ring may be either in the file: compare by spread
        assert min(abs(a.std() - other.std()) for other in (b, drawn.X[drawn.y == -sign])) < 0.05


@pytest.mark.parametrize("draw", [g241c, g241d])
def test_the_book_sets_are_standardised_and_balanced(draw):
    data = draw(1500, random_state=0)
    assert data.X.shape == (1500, 241)
    np.testing.assert_allclose(data.X.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(data.X.std(axis=0), 1.0, atol=1e-10)
    assert data.y.sum() == 0


def test_the_classes_of_g241c_lie_two_and_a_half_apart():
    data = g241c(1500, random_state=0)
    apart = data.X[data.y > 0].mean(axis=0) - data.X[data.y < 0].mean(axis=0)
    noise = 241 * 4 / 1500
    assert np.sqrt(apart @ apart - noise) == pytest.approx(2.5, abs=0.15)


def test_the_clusters_of_g241d_mislead():
    data = g241d(1500, random_state=0)
    leading = np.linalg.svd(data.X, full_matrices=False)[0][:, 0]
    cluster = np.where(leading > 0, 1, -1)
    agreement = abs((cluster * data.y).mean())
    assert agreement < 0.1  # the widest split says nothing about the class
    near = data.X[cluster > 0]
    apart = near[data.y[cluster > 0] > 0].mean(axis=0) - near[data.y[cluster > 0] < 0].mean(axis=0)
    assert np.sqrt(apart @ apart - 241 * 4 / len(near)) == pytest.approx(2.5, abs=0.3)


def test_corrupted_entries_look_like_the_other_class():
    data = corrupted_views(2000, n_views=3, share=0.3, random_state=0)
    corrupted = data.extra["corrupted"]
    assert corrupted.mean() == pytest.approx(0.3, abs=0.03)
    for m, (_, table) in enumerate(data.X.items()):
        clean = ~corrupted[:, m]
        centre = table[clean & (data.y > 0)].mean(axis=0)
        assert np.linalg.norm(centre) == pytest.approx(1.5, abs=0.2)
        flipped = table[corrupted[:, m] & (data.y > 0)].mean(axis=0)
        assert centre @ flipped < 0


def test_privileged_columns_say_how_hard_a_sample_is():
    data = privileged_toy(5000, random_state=0)
    score, size = data.extra["privileged"].T
    assert (np.sign(score) == data.y).all()
    error = np.abs(data.X[:, 0] - score)
    assert np.corrcoef(error, size)[0, 1] > 0.5


def test_noise_columns_stand_beside_the_others(rng):
    X = rng.normal(size=(400, 5))
    noisy = with_noise_features(X, 1.2, random_state=0)
    assert noisy.shape == (400, 11)
    assert (noisy[:, :5] == X).all()
    np.testing.assert_allclose(noisy[:, 5:].std(axis=0), 1.0, atol=0.15)


@pytest.mark.parametrize("draw", [ringnorm, g241c, g241d, corrupted_views, privileged_toy])
def test_a_seed_gives_the_same_draw(draw):
    first, second, other = (draw(40, random_state=seed) for seed in (3, 3, 4))
    assert (first.y == second.y).all()
    tables = [d.X if isinstance(d.X, np.ndarray) else d.X.concatenate() for d in (first, second, other)]
    assert (tables[0] == tables[1]).all()
    assert (tables[0] != tables[2]).any()


def test_overlapping_gaussians_are_two_gaussians_in_every_view():
    drawn = overlapping_gaussians(2, 20_000, random_state=0)
    test = drawn.extra["X_test"]
    for view in drawn.X.names:
        for label in (1, -1):
            seen, new = drawn.X[view][drawn.y == label], test[view][drawn.y == label]
            assert (np.abs(seen.mean(axis=0) - 1.5) < 0.6).all()
            assert np.linalg.eigvalsh(np.cov(seen.T)).min() > 0.95  # AA' + I
            np.testing.assert_allclose(seen.mean(axis=0), new.mean(axis=0), atol=0.1)
            np.testing.assert_allclose(np.cov(seen.T), np.cov(new.T), rtol=0.15, atol=0.15)
    again = overlapping_gaussians(2, 20_000, random_state=0)
    np.testing.assert_array_equal(again.X["view1"], drawn.X["view1"])
