"""A table with columns of every type, and a target that depends on most of them."""

import numpy as np
import pandas as pd

CITIES = ["Oslo", "Lund", "Turku", "Riga"]
STAGES = ["I", "II", "III"]
GOOD, BAD = ["stable", "calm", "resting", "improved"], ["pain", "fever", "worse", "bleeding"]


def mixed_table(n, seed=0, gaps=0.1):
    """Return a pandas frame of numbers, words, an order, dates, notes and sets with empty cells, and labels."""
    rng = np.random.default_rng(seed)
    sick = rng.integers(0, 2, n)
    table = pd.DataFrame(
        {
            "age": rng.normal(60, 12, n).round(1),
            "smokes": rng.random(n) < 0.4,
            "city": rng.choice(CITIES, n),
            "stage": pd.Categorical(rng.choice(STAGES, n), STAGES, ordered=True),
            "seen": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "note": [
                f"patient seen today {' '.join(rng.choice(BAD if s else GOOD, 2))} {k}"
                for k, s in enumerate(sick)
            ],
            "drugs": [list(rng.choice(list("abcd"), rng.integers(1, 4), replace=False)) for _ in range(n)],
        }
    )
    z = (
        (table["age"] - 60) / 12
        + (table["stage"].cat.codes - 1)
        + 2 * sick
        - 1
        + table["city"].isin(CITIES[:2])
        - 0.5
    )
    y = np.where(z + rng.normal(0, 0.3, n) > 0, "ill", "well")
    for name in ("age", "city", "note"):
        table.loc[rng.random(n) < gaps, name] = np.nan if name == "age" else None
    return table, y
