"""Killed at any moment, training continues to the result of an uninterrupted run."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.reference.pnorm import pnorm_problem

from kernelweave import KernelBank, ObscureClassifier, RandomFourier
from kernelweave.kernels import Gaussian
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
    model.fit(list(Ks), y)
    expected = model.dual_coef_, model.support_, model.bounds_
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

    assert start("", tmp_path / "uninterrupted.npz").wait(timeout=120) == 0
    process = start(state, out)
    while not state.exists() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    assert process.wait(timeout=60) != 0, "it was to be killed on the way"
    assert state.exists()
    assert start(state, out).wait(timeout=120) == 0
    uninterrupted, resumed = np.load(tmp_path / "uninterrupted.npz"), np.load(out)
    for name in ("coef", "support", "bounds"):
        np.testing.assert_array_equal(uninterrupted[name], resumed[name])


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    Ks, y = pnorm_problem(0, n=20)
    Checkpoint(tmp_path / "state.npz", key="something else").save({"A": np.zeros(1)})
    model = ObscureClassifier("precomputed", checkpoint=tmp_path / "state.npz")
    with pytest.raises(ValueError, match="belongs to other data or parameters"):
        model.fit(list(Ks), y)


def begun(place, X, y, sample_weight=None, **params):
    """Leave the checkpoint of a fit that was stopped after its first step."""
    model = ObscureClassifier(**params, checkpoint=Checkpoint(place, seconds=0.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "clear", lambda _: None)
        model.fit(X, y, sample_weight=sample_weight)
    assert place.exists()


def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    return rng.normal(size=(60, 3)) + y[:, None], y


FIXED = KernelBank([Gaussian(gamma=0.2)])
FIT = {"C": 1.0, "p": 1.5, "solver": DualAscent(tol=1e-3), "random_state": 0}


@pytest.mark.parametrize(
    "change",
    [
        {"C": 2.0},
        {"p": 1.4},
        {"random_state": 1},
        {"solver": DualAscent(tol=1e-2)},
        {"features": RandomFourier(10)},
        {"bank": KernelBank([Gaussian(gamma=0.3)])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_checkpoint_of_other_parameters_is_refused(tmp_path, change):
    X, y = table()
    first = FIT | {"bank": FIXED}
    begun(tmp_path / "state.npz", X, y, **first)
    with pytest.raises(ValueError, match="belongs to other data or parameters"):
        ObscureClassifier(**(first | change), checkpoint=tmp_path / "state.npz").fit(X, y)


def one_entry(X):
    X = np.array(X)
    X[1, 2] += 1e-3  # sample 1 is none of the probes
    return X


def test_a_checkpoint_of_other_samples_labels_or_weights_is_refused(tmp_path):
    X, y = table()
    weight = np.ones(60)
    begun(tmp_path / "state.npz", X, y, weight, bank=FIXED, **FIT)
    model = ObscureClassifier(FIXED, **FIT, checkpoint=tmp_path / "state.npz")
    others = {
        "samples": (one_entry(X), y, weight),
        "labels": (X, np.r_[(y[0] + 1) % 3, y[1:]], weight),
        "weights": (X, y, np.r_[2.0, weight[1:]]),
    }
    for arguments in others.values():
        with pytest.raises(ValueError, match="belongs to other data or parameters"):
            model.fit(*arguments)
    model.fit(X, y, weight)


def test_a_checkpoint_of_other_kernels_is_refused(tmp_path):
    X, y = table()
    kernels = [X @ X.T, (1.0 + 0.1 * X @ X.T) ** 2]
    begun(tmp_path / "state.npz", kernels, y, bank="precomputed", **FIT)
    other = [K.copy() for K in kernels]
    other[1][1, 1] += 1e-3  # sample 1 is none of the probes
    model = ObscureClassifier("precomputed", **FIT, checkpoint=tmp_path / "state.npz")
    with pytest.raises(ValueError, match="belongs to other data or parameters"):
        model.fit(other, y)
    model.fit([K.copy() for K in kernels], y)


def test_a_path_that_cannot_hold_a_checkpoint_is_refused_before_any_work(tmp_path):
    X, y = table()
    for place, match in [
        (tmp_path / "missing" / "state.npz", "folder that exists"),
        (tmp_path, "is a folder"),
        (Checkpoint(tmp_path / "missing" / "state.npz"), "folder that exists"),
    ]:
        with pytest.raises(ValueError, match=match):
            ObscureClassifier(checkpoint=place).fit(X, y)
    for wrong in (5, Checkpoint(5)):
        with pytest.raises(TypeError, match="checkpoint must be a path or a Checkpoint; got 5"):
            ObscureClassifier(checkpoint=wrong).fit(X, y)


@pytest.mark.parametrize("kind", ["text", "empty", "array", "archive", "cut"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, kind):
    place = tmp_path / "state.npz"
    if kind == "text":
        place.write_text("hello")
    elif kind == "empty":
        place.touch()
    elif kind == "array":
        with place.open("wb") as file:
            np.save(file, np.arange(3))
    else:
        np.savez(place, A=np.arange(100))
        if kind == "cut":
            place.write_bytes(place.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"state.npz' is no checkpoint; remove it, or give another path"):
        ObscureClassifier(checkpoint=place).fit(*table())


def test_a_half_written_file_is_never_read(tmp_path, monkeypatch):
    place = Checkpoint(tmp_path / "state.npz", key="k")
    place.save({"A": np.ones(3)})

    def broken(*args, **kwargs):
        args[0].write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="disk full"):
        place.save({"A": np.zeros(3)})
    np.testing.assert_array_equal(place.load()["A"], np.ones(3))
