"""Ctrl-C while threads are at work, at the same moment in every run."""

from concurrent.futures import wait
from threading import Event

from kernelweave.solvers.problem import Walk


def interrupt_the_first_wait(monkeypatch):
    """Interrupt the main thread when it first waits; the others only go on once it waits again.

    Returns the list of how many jobs were waited for, call by call.
    """
    calls, told, visit = [], Event(), Walk.visit

    def interrupted_once(futures):
        calls.append(len(futures))
        if len(calls) == 1:
            raise KeyboardInterrupt
        told.set()
        return wait(futures)

    def held_back(self, eta, inner_tol=None):
        assert told.wait(60.0)
        return visit(self, eta, inner_tol)

    monkeypatch.setattr("kernelweave.estimators.interrupt.wait", interrupted_once)
    monkeypatch.setattr(Walk, "visit", held_back)
    return calls
