"""Ctrl-C while threads are at work, at the same moment in every run."""

from concurrent.futures import wait
from threading import Event

from kernelweave.solvers.problem import OuterState


def interrupt_the_first_wait(monkeypatch):
    """Interrupt the main thread when it first waits; the others only go on once it waits again.

    Returns the list of how many jobs were waited for, call by call.
    """
    calls, told, evaluate = [], Event(), OuterState.evaluate

    def interrupted_once(futures):
        calls.append(len(futures))
        if len(calls) == 1:
            raise KeyboardInterrupt
        told.set()
        return wait(futures)

    def held_back(self, eta, inner_tol=None):
        assert told.wait(60.0)
        return evaluate(self, eta, inner_tol)

    monkeypatch.setattr("kernelweave.estimators.progress.wait", interrupted_once)
    monkeypatch.setattr(OuterState, "evaluate", held_back)
    return calls
