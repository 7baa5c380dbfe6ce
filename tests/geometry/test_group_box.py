"""Groups of kernels with capped norms."""

import numpy as np
import pytest

from kernelweave.geometry import BoxSimplex, GroupBox, LpBall


def group_norms(eta, groups):
    return {t: float(np.linalg.norm(eta[np.array(groups) == t])) for t in dict.fromkeys(groups)}


def test_the_block_update_is_that_of_the_thesis():
    groups, theta = [0, 0, 1, 1, 2], 0.5
    norms = np.array([8.0, 27.0, 1.0, 0.125, 0.001])
    # N_t = (sum norm^(4/3))^(3/4): group 0 alone passes theta, the others share 1 - theta by N_t.
    powers = norms ** (4.0 / 3.0)
    N = np.array([powers[:2].sum(), powers[2:4].sum(), powers[4]]) ** 0.75
    assert N[0] / N.sum() > theta
    shares = np.array([theta, (1 - theta) * N[1] / N[1:].sum(), (1 - theta) * N[2] / N[1:].sum()])
    roots = norms ** (2.0 / 3.0)
    lengths = np.array([np.linalg.norm(roots[:2]), np.linalg.norm(roots[2:4]), roots[4]])
    expected = roots * (shares / lengths)[groups]
    np.testing.assert_allclose(GroupBox(groups, theta).reweight(norms), expected, rtol=1e-13)


def test_groups_without_norms_share_evenly_what_the_others_leave():
    groups = ["x", "x", "y", "y", "y", "z"]
    eta = GroupBox(groups, 0.4).reweight(np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(eta, [0.4, 0.0, *[0.3 / np.sqrt(3.0)] * 3, 0.3], rtol=1e-14)
    hard = GroupBox(groups, 1.0).reweight(np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(hard, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-15)


def test_no_norms_at_all_give_the_even_start():
    geometry = GroupBox(["x", "x", "y"], 0.8)
    np.testing.assert_allclose(geometry.reweight(np.zeros(3)), geometry.start(3), rtol=1e-14)
    np.testing.assert_allclose(geometry.start(3), [0.5 / np.sqrt(2), 0.5 / np.sqrt(2), 0.5], rtol=1e-15)


def test_kernels_on_their_own_are_the_capped_simplex(rng):
    h, norms = rng.random(6), rng.random(6)
    single, box = GroupBox(None, 0.3), BoxSimplex(0.3)
    np.testing.assert_allclose(single.maximizer(h), box.maximizer(h), rtol=1e-14)
    np.testing.assert_allclose(single.reweight(norms), box.reweight(norms), rtol=1e-12)
    np.testing.assert_allclose(single.project(1.0 + norms), box.project(1.0 + norms), rtol=1e-12)
    root = rng.normal(size=(4, 6))
    steps = [g.model_step(np.full(6, 1 / 6), 4.0 + h, root.T @ root) for g in (single, box)]
    np.testing.assert_array_equal(*steps)


def test_one_group_of_all_is_the_two_norm_ball(rng):
    h, z = rng.random(5), rng.normal(size=5) * 2.0
    together, ball = GroupBox(["all"] * 5), LpBall(2.0)
    np.testing.assert_allclose(together.maximizer(h), ball.maximizer(h), rtol=1e-13)
    np.testing.assert_allclose(together.project(z), ball.project(z), rtol=1e-13)
    np.testing.assert_allclose(together.reweight(h), ball.reweight(h), rtol=1e-12)


def test_a_cap_below_one_over_the_groups_binds_them_all(rng):
    groups = [0, 0, 1, 2, 2]
    geometry = GroupBox(groups, 0.2)
    for eta in (geometry.start(5), geometry.maximizer(rng.random(5)), geometry.reweight(rng.random(5))):
        assert list(group_norms(eta, groups).values()) == pytest.approx([0.2] * 3, rel=1e-13)


def test_labels_may_be_anything_that_can_be_compared(rng):
    h = rng.random(4)
    expected = GroupBox([0, 1, 0, 2], 0.5).maximizer(h)
    for groups in (["b", "a", "b", "c"], [("x", 1), None, ("x", 1), 3.5], np.array([9, 4, 9, 1]).tolist()):
        np.testing.assert_array_equal(GroupBox(groups, 0.5).maximizer(h), expected)


def test_whole_groups_leave_exactly(rng):
    groups = [0, 0, 1, 1, 2, 2]
    h = np.array([1.0, 0.9, 0.05, 0.04, 0.8, 1.0])
    root = 0.1 * rng.normal(size=(6, 6))
    eta = GroupBox(groups, 1.0).model_step(GroupBox(groups, 1.0).start(6), h, root.T @ root)
    assert np.all(eta[2:4] == 0.0)
    assert sum(group_norms(eta, groups).values()) == pytest.approx(1.0, abs=1e-9)


def test_a_group_without_gain_moves_only_along_its_idle_kernels():
    eta = GroupBox(["a", "a", "b"], 0.7).maximizer(np.array([0.0, -1.0, 2.0]))
    np.testing.assert_allclose(eta, [0.3, 0.0, 0.7], rtol=1e-14)
