"""Killed at any moment, training goes on to the result of an uninterrupted run."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.reference.pnorm import pnorm_problem

from kernelweave import ObscureClassifier
from kernelweave.solvers import Checkpoint, DualAscent, OnlineBatch, Pegasos

SOLVERS = [DualAscent(tol=1e-7, max_passes=60.0), DualAscent(tol=1e-6, block=15, max_passes=30.0)]
SOLVERS += [OnlineBatch(3, 6), Pegasos(6)]

TRAIN = """
import sys, numpy as np
from sklearn.datasets import load_digits
from kernelweave import KernelBank, ObscureClassifier
from kernelweave.kernels import Gaussian, Linear
from kernelweave.solvers import Checkpoint, {name}
X, y = load_digits(return_X_y=True)
bank = KernelBank.per_view([Linear(), Gaussian()], views={{"up": slice(0, 32), "down": slice(32, 64)}})
model = ObscureClassifier(bank, C=100.0, p=1.5, solver={solver!r}, random_state=3, memory_limit=2e7,
                          checkpoint=Checkpoint(sys.argv[1], seconds=0.0) if sys.argv[1] else None)
model.fit(X[:400] / 16, y[:400])
np.savez(sys.argv[2], coef=model.dual_coef_, support=model.support_, bounds=model.bounds_)
"""


class Stop(BaseException):
    pass


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("after", [1, 4])
@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
def test_a_run_that_was_stopped_ends_bit_by_bit_like_one_that_was_not(tmp_path, monkeypatch, solver, after):
    Ks, y = pnorm_problem(0)
    model = ObscureClassifier("precomputed", C=10.0, p=1.5, solver=solver, random_state=1)
    whole = model.fit(list(Ks), y)
    expected = whole.dual_coef_, whole.support_, whole.bounds_
    place = Checkpoint(tmp_path / "state.npz", seconds=0.0)
    saved = []

    def save_and_stop(self, state):
        real(self, state)
        saved.append(1)
        if len(saved) == after:
            raise Stop

    real = Checkpoint.save
    monkeypatch.setattr(Checkpoint, "save", save_and_stop)
    with pytest.raises(Stop):
        model.set_params(checkpoint=place).fit(list(Ks), y)
    monkeypatch.setattr(Checkpoint, "save", real)
    assert (tmp_path / "state.npz").exists()
    model.fit(list(Ks), y)
    np.testing.assert_array_equal(model.dual_coef_, expected[0])
    np.testing.assert_array_equal(model.support_, expected[1])
    assert model.bounds_ == expected[2]
    assert not (tmp_path / "state.npz").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a system that kills")
def test_kill_minus_nine_and_resume(tmp_path):
    solver = DualAscent(tol=1e-5, max_passes=6.0)
    script = tmp_path / "train.py"
    script.write_text(TRAIN.format(name=type(solver).__name__, solver=solver))
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    state, out = tmp_path / "state.npz", tmp_path / "out.npz"

    def start(place, target):
        return subprocess.Popen([sys.executable, str(script), str(place), str(target)], env=environment)

    assert start("", tmp_path / "whole.npz").wait(timeout=120) == 0
    process = start(state, out)
    while not state.exists() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    assert process.wait(timeout=60) != 0, "it was to be killed on the way"
    assert state.exists()
    assert start(state, out).wait(timeout=120) == 0
    whole, resumed = np.load(tmp_path / "whole.npz"), np.load(out)
    for name in ("coef", "support", "bounds"):
        np.testing.assert_array_equal(whole[name], resumed[name])


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    Ks, y = pnorm_problem(0, n=20)
    Checkpoint(tmp_path / "state.npz", key="something else").save({"A": np.zeros(1)})
    model = ObscureClassifier("precomputed", checkpoint=tmp_path / "state.npz")
    with pytest.raises(ValueError, match="belongs to other data or parameters"):
        model.fit(list(Ks), y)


def test_a_half_written_file_is_never_seen(tmp_path, monkeypatch):
    place = Checkpoint(tmp_path / "state.npz", key="k")
    place.save({"A": np.ones(3)})

    def broken(*args, **kwargs):
        args[0].write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="disk full"):
        place.save({"A": np.zeros(3)})
    np.testing.assert_array_equal(place.load()["A"], np.ones(3))
