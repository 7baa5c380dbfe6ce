"""Writes the reference of all public names from their docstrings: python docs/api.py [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path

# What a user imports from; everything in their __all__ gets an entry (presets is in that of the first).
MODULES = (
    "kernelweave",
    *(
        f"kernelweave.{layer}"
        for layer in (
            *("kernels", "views", "bank", "geometry", "learners", "solvers"),
            *("multiclass", "weak_labels", "privileged", "metric", "adaptive", "baselines", "evidence"),
            *("explain", "plots", "report", "evaluation", "datasets", "io", "errors"),
        )
    ),
)


def build(folder: Path) -> Path:
    """Write one page per module and return the first."""
    import pdoc

    pdoc.render.configure(docformat="numpy", show_source=False, footer_text="kernelweave")
    pdoc.pdoc(*MODULES, output_directory=folder)
    return folder / "kernelweave.html"


if __name__ == "__main__":
    print(f"API reference: {build(Path(sys.argv[1] if len(sys.argv) > 1 else 'build/api')).resolve()}")
