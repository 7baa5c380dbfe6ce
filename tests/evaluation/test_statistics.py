"""Ranks and tests against what is printed in the literature, against scipy, and against loops."""

import numpy as np
import pytest
from scipy import stats

from kernelweave.evaluation import average_ranks, friedman_nemenyi, paired, ranks, summary
from kernelweave.evaluation.statistics import interval_of_mean

# Table 5(a) of Demšar (2006): critical values of the two-tailed Nemenyi test for k = 3 ... 10 methods.
NEMENYI = {
    0.05: [2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
    0.10: [2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
}


@pytest.mark.parametrize("alpha", NEMENYI)
@pytest.mark.parametrize("k", range(3, 11))
def test_the_critical_difference_has_the_published_values(rng, alpha, k):
    result = friedman_nemenyi(rng.random((14, k)), alpha=alpha)
    q = NEMENYI[alpha][k - 3]
    assert result.critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 14)), rel=5e-4)


def test_ranks_beyond_the_critical_difference_differ():
    scores = np.tile([4.0, 3.0, 2.0, 1.0], (14, 1))
    scores[0, :2] = 1.0, 2.0
    result = friedman_nemenyi(scores)
    assert result.differ(0, 3)
    assert not result.differ(0, 1)
    assert result.p_value < 1e-6


def test_friedman_without_ties_is_the_formula(rng):
    scores = rng.random((9, 5))
    R = average_ranks(scores)
    n, k = scores.shape
    expected = 12 * n / (k * (k + 1)) * ((R**2).sum() - k * (k + 1) ** 2 / 4)
    result = friedman_nemenyi(scores)
    assert result.statistic == pytest.approx(expected)
    assert result.p_value == pytest.approx(stats.chi2.sf(expected, k - 1))


def test_methods_that_are_all_the_same_do_not_differ():
    result = friedman_nemenyi(np.ones((4, 3)))
    assert result.p_value == 1.0
    assert not result.differ(0, 1)


def test_smaller_may_be_better():
    assert ranks([[1.0, 2.0, 3.0]], larger_is_better=False).tolist() == [[1.0, 2.0, 3.0]]
    assert ranks([[1.0, 2.0, 3.0]]).tolist() == [[3.0, 2.0, 1.0]]


def test_independent_pairs_give_students_test(rng):
    a, b = rng.normal(size=12), rng.normal(size=12)
    expected = stats.ttest_rel(a, b)
    result = paired(a, b)
    assert result.p_value == pytest.approx(expected.pvalue)
    np.testing.assert_allclose(result.interval, expected.confidence_interval(0.95))
    assert result.effect == pytest.approx((a - b).mean() / (a - b).std(ddof=1))
    assert result.wins == pytest.approx(np.mean(a > b))


def test_overlapping_splits_widen_the_interval(rng):
    a, b = rng.normal(size=10), rng.normal(size=10)
    plain, corrected = paired(a, b), paired(a, b, test_share=0.3)
    width = [r.interval[1] - r.interval[0] for r in (plain, corrected)]
    assert width[1] / width[0] == pytest.approx(np.sqrt((1 / 10 + 0.3 / 0.7) / (1 / 10)))
    assert corrected.p_value > plain.p_value


@pytest.mark.parametrize(
    ("first", "second", "wins"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.5),
        ([0.75, 0.5], [0.5, 0.25], 1.0),
        ([0.9, 0.8, 0.7], [0.8, 0.7, 0.6], 1.0),  # equal but for rounding
        ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], 0.0),
    ],
)
def test_differences_without_spread_have_no_known_error(first, second, wins):
    found = paired(first, second, test_share=0.5)
    assert found.difference == pytest.approx(first[0] - second[0])
    assert not found.is_known
    assert np.isnan([*found.interval, found.p_value, found.effect]).all()
    assert found.wilcoxon > 0.05
    assert found.wins == wins
    assert paired([1.0, 2.0, 0.0], [1.0, 2.0, 1.0]).is_known
    assert paired([1.0, 2.0, 0.0], [1.0, 2.0, 1.0]).wins == pytest.approx(1 / 3)


def test_the_interval_of_a_mean_is_students(rng):
    x = rng.normal(size=8)
    expected = stats.t.interval(0.95, 7, loc=x.mean(), scale=stats.sem(x))
    np.testing.assert_allclose(interval_of_mean(x), expected)
    assert interval_of_mean([2.0]) == (2.0, 2.0)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        summary([])
    with pytest.raises(ValueError, match="2 data sets and 3 methods, received 1 and 3"):
        friedman_nemenyi([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="one length"):
        paired([1.0], [1.0])
    for share in (1.0, 1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match="test_share must be a number from 0 to below 1"):
            paired([1.0, 2.0], [1.0, 3.0], test_share=share)
    with pytest.raises(ValueError, match="all finite"):
        ranks([[np.nan, 1.0]])
