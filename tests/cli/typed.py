"""Commands as a user types them, and tables to type them on."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from kernelweave.cli import app


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


def frame(n=60, seed=0, classes=("no", "yes")):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.array(classes)[np.digitize(X[:, 0] - X[:, 3], np.linspace(-1, 1, len(classes) + 1)[1:-1])]
    table = pd.DataFrame(X, columns=["a1", "a2", "b1", "b2", "b3"])
    return table.assign(label=y, key=[f"{k:03d}" for k in range(n)])
