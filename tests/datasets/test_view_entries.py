"""Samples in views of which entries are swapped or taken away."""

import numpy as np

from kernelweave.datasets.view_entries import make_views, remove_entries, swap_entries


def stacked(data):
    return np.hstack([data.X[name] for name in data.X.names])


def test_training_and_test_parts_share_their_directions_and_nothing_else():
    train, test = (make_views(4000, n_views=2, random_state=(1, part)) for part in (0, 1))
    sides = [stacked(d)[d.y > 0].mean(axis=0) - stacked(d)[d.y < 0].mean(axis=0) for d in (train, test)]
    assert np.abs(sides[0] - sides[1]).max() < 0.2
    assert np.linalg.norm(sides[0][:5]) > 2.5
    assert not np.isin(stacked(train)[:50], stacked(test)).any()


def test_swapped_entries_are_those_of_samples_of_the_other_class():
    data = make_views(40, n_views=3, random_state=0)
    bad = swap_entries(data, 0.3, 1)
    assert 0.15 < bad.corrupted.mean() < 0.45
    for m, name in enumerate(data.X.names):
        for i in range(40):
            if bad.corrupted[i, m]:
                (j,) = np.flatnonzero((data.X[name] == bad.X[name][i]).all(axis=1))
                assert data.y[j] != data.y[i]
            else:
                assert np.array_equal(data.X[name][i], bad.X[name][i])


def test_removed_entries_are_rows_of_nan_and_never_all():
    gone = remove_entries(make_views(100, n_views=3, random_state=0), 0.8, 0)
    missing = np.column_stack([np.isnan(table) for _, table in gone.X.items()]).reshape(100, 3, -1)
    np.testing.assert_array_equal(missing.all(axis=2), gone.corrupted)
    np.testing.assert_array_equal(missing.any(axis=2), gone.corrupted)
    assert not gone.corrupted.all(axis=1).any()
