"""Contestants take turns."""

from benchmarks.measure import turn


def test_nobody_always_follows_the_same():
    contestants = dict.fromkeys("abc", lambda: None)
    assert [turn(contestants, number) for number in range(3)] == [list("abc"), list("cba"), list("abc")]
