"""Names that stay apart."""

from __future__ import annotations

from collections.abc import Iterable


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with #2, #3, ... after the repeated ones.

    Examples
    --------
    >>> unique(["a", "b", "a"])
    ('a', 'b', 'a#2')

    """
    names = list(names)
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        candidate, count = name, 1
        while candidate in seen or (count > 1 and candidate in taken):
            count += 1
            candidate = f"{name}#{count}"
        seen.add(candidate)
        result.append(candidate)
    return tuple(result)
