"""Sets of candidates and the search for the most violated one, against brute force."""

from itertools import combinations

import numpy as np
import pytest
from tests.reference import weak
from tests.weak_labels.data import bags_of, kernels

from kernelweave.weak_labels import CandidateObjective, Exhaustive, Labelings, MultiStart


def sets(rng):
    n = int(rng.integers(5, 9))
    known = np.zeros(n)
    known[:2] = 1, -1
    yield Labelings.balanced(known, int(rng.integers(1, n - 3)), n - 3)
    yield Labelings.balanced(np.zeros(n), n // 2, n // 2)
    yield Labelings.of_bags(np.array([-1.0, 1.0, 1.0]), np.array([2, 3, 3]), np.array([1, 1, 2]))
    yield bags_of([3, 1, 4, 1], [1, -1, 1, -1], [1, 1, 2, 1])


@pytest.mark.parametrize("seed", range(8))
def test_ascents_rise_stay_legal_and_never_pass_brute_force(seed):
    rng = np.random.default_rng(seed)
    for ambiguity in sets(rng):
        (K,), alpha = kernels(rng, ambiguity.n_points, 1), rng.exponential(size=ambiguity.n_samples)
        objective, every = CandidateObjective(K, alpha, ambiguity), list(ambiguity.all_candidates())
        assert all(ambiguity.contains(h) for h in every)
        assert len({h.tobytes() for h in every}) == len(every)

        def value(h, K=K, ambiguity=ambiguity, alpha=alpha):
            c = ambiguity.to_points(h, alpha)
            return c @ K @ c

        best = max(map(value, every))
        starts = [ambiguity.from_scores(rng.normal(size=ambiguity.n_points)) for _ in range(3)]
        for start in starts:
            (end,) = objective.ascend([start])
            assert value(start) - 1e-12 <= end.value <= best + 1e-9
            assert ambiguity.contains(end.candidate)
            assert end.value == pytest.approx(value(end.candidate))
        together = {ambiguity.key(end.candidate) for end in objective.ascend(starts)}
        assert together == {ambiguity.key(objective.ascend([start])[0].candidate) for start in starts}
        for near in ambiguity.neighbours(starts[0]):
            assert ambiguity.contains(near)
        assert Exhaustive().find(objective, [])[0].value == pytest.approx(best)
        scores = rng.normal(size=ambiguity.n_points)
        along = [ambiguity.to_points(h, np.ones(ambiguity.n_samples)) @ scores for h in every]
        follows = ambiguity.to_points(ambiguity.from_scores(scores), np.ones(ambiguity.n_samples)) @ scores
        assert follows == pytest.approx(max(along))


def small_case(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 13))
    (K,) = kernels(rng, n, 1)
    K -= K.mean(axis=0) + K.mean(axis=1)[:, None] - K.mean()
    known = np.zeros(n)
    known[:2] = 1, -1
    return K, rng.exponential(size=n) ** 2, Labelings.balanced(known, (n - 2) // 2, (n - 2) // 2)


def test_the_oracle_finds_the_global_optimum_in_most_of_two_hundred_small_cases():
    hits = 0
    for seed in range(200):
        K, alpha, balanced = small_case(seed)
        Y = np.array(list(balanced.all_candidates()), dtype=float) * alpha
        best = np.einsum("ti,ij,tj->t", Y, K, Y).max()
        found = max(
            MultiStart().find(CandidateObjective(K, alpha, balanced), []), key=lambda each: each.value
        )
        assert balanced.contains(found.candidate)
        assert found.value <= best * (1 + 1e-9)
        hits += found.value >= best * (1 - 1e-9)
    assert hits >= 160


def test_brute_force_by_loops_agrees_with_the_exhaustive_oracle():
    K, alpha, balanced = small_case(3)
    every = []
    for chosen in combinations(np.flatnonzero(balanced.known == 0), balanced.max_chosen[0]):
        y = np.where(balanced.known != 0, balanced.known, -1.0)
        y[list(chosen)] = 1
        every.append(y)
    found = Exhaustive().find(CandidateObjective(K, alpha, balanced), [])[0]
    assert found.value == pytest.approx(weak.best_labeling(K, alpha, every))


def test_the_mirror_is_taken_when_the_known_labels_agree_with_it(rng):
    n = 40
    X = np.r_[rng.normal(-2, 1, size=(n // 2, 2)), rng.normal(2, 1, size=(n // 2, 2))]
    K = X @ X.T
    truth = np.repeat([-1.0, 1.0], n // 2)
    known = np.zeros(n)
    known[[0, 1, 20, 21]] = truth[[0, 1, 20, 21]]
    alpha = np.where(known != 0, 1e-9, 1.0)  # the labelled samples have next to no coefficient
    balanced = Labelings.balanced(known, 18, 18)
    found = MultiStart().find(CandidateObjective(K, alpha, balanced), [-truth])[0]
    assert np.mean(found.candidate == truth) > 0.9


def test_without_any_label_a_labeling_and_its_opposite_are_one_candidate(rng):
    free, scores = Labelings.balanced(np.zeros(9), 3, 6), rng.normal(size=9)
    y = free.from_scores(scores)
    assert free.key(y) == free.key(-y)
    np.testing.assert_array_equal(free.orient(y, -scores), -y)
    np.testing.assert_array_equal(free.orient(-y, scores), y)
    one_known = Labelings.balanced(np.r_[1.0, np.zeros(8)], 3, 6)
    assert one_known.key(y) != one_known.key(-y)
    np.testing.assert_array_equal(one_known.orient(y, -scores), y)


def test_only_known_labels_of_both_classes_justify_a_mirror():
    y = np.array([1, -1, -1, 1], dtype=np.int8)
    assert Labelings.balanced(np.array([1.0, -1.0, 0.0, 0.0]), 1, 1).mirror(y) is not None
    assert Labelings.balanced(np.zeros(4), 2, 2).mirror(y) is None
    bags = Labelings.of_bags(np.array([-1.0, 1.0]), np.array([2, 2]), np.array([1, 1]))
    assert bags.mirror(bags.from_scores(np.array([0.0, 0.0, 1.0, -1.0]))) is None


def test_no_mirror_comes_first_once_the_labelled_samples_carry_weight(rng):
    n = 40
    X = np.r_[rng.normal(-2, 1, size=(n // 2, 2)), rng.normal(2, 1, size=(n // 2, 2))]
    labelled = [0, 1, 20, 21]
    X[labelled] *= 0.1  # next to the origin: they hardly tell a labeling from its mirror
    known = np.zeros(n)
    known[labelled] = 1.0, -1.0, 1.0, 1.0  # the first is wrong, and nearly all the labelled weight is on it
    balanced, truth = Labelings.balanced(known, 18, 18), np.repeat([-1.0, 1.0], n // 2)
    unknown, heads = known == 0.0, {}
    for share in (0.04, 0.06):
        alpha = np.where(unknown, (1.0 - share) / 36, 1e-6 * share)
        alpha[0] = share
        assert balanced.known_share(alpha) == pytest.approx(share, rel=1e-3)
        heads[share] = MultiStart().find(CandidateObjective(X @ X.T, alpha, balanced), [truth])[:2]
    first, best = heads[0.04]  # the mirror of the best comes first: three of four labels agree with it
    assert 0.95 * best.value <= first.value < best.value
    assert np.mean(first.candidate[unknown] == truth[unknown]) > 0.9
    first, second = heads[0.06]
    assert first.value > second.value
    assert np.mean(first.candidate[unknown] == truth[unknown]) < 0.1
