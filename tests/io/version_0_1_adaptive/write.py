"""Written once, by the version of the folder beside it: models that hold rounds of switches, and a gating.

    python tests/io/version_0_1_adaptive/write.py

Later versions read these files (tests/io/test_old_files.py); they never write them again.
"""

import warnings
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

import kernelweave as kw
from kernelweave.kernels import Gaussian, Linear

FOLDER = Path(__file__).parent


def models(X, y, three):
    """Yield (name, fitted model)."""
    from kernelweave.methods.gating import Sigmoid  # where it was then

    bank = kw.KernelBank.per_view([Gaussian(), Linear()], views={"a": slice(0, 2), "b": slice(2, 4)})
    yield "switches", kw.SampleAdaptiveMKLClassifier(bank, max_flips=2).fit(X, y)
    yield "switches_three_classes", kw.SampleAdaptiveMKLClassifier(bank, max_flips=1).fit(X, three)
    gating = Sigmoid(features=[0, 1])
    local = kw.LocalizedMKLClassifier(bank, gating=gating, n_restarts=0, tol=1e-3, random_state=0)
    yield "gating", local.fit(X, three)
    yield "f_heuristic", kw.FHeuristicClassifier(bank).fit(X, y)
    yield "pwmk", kw.PWMKClassifier(bank, cv=2).fit(X, three)


def main():
    warnings.simplefilter("ignore")
    data = dict(np.load(FOLDER.parent / "version_0_1" / "inputs.npz"))
    expected = {}
    for name, model in models(data["X"], data["y"], data["three"]):
        path = FOLDER / f"{name}.kw"
        kw.save(model, path, notes={"method": "decision_function"})
        with ZipFile(path) as archive:
            members = {member: archive.read(member) for member in archive.namelist()}
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        expected[name] = model.decision_function(data["new"])
    np.savez_compressed(FOLDER / "inputs.npz", **data)
    np.savez_compressed(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    main()
