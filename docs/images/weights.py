"""Draw weights.png: kernel weights from the average kernel to the simplex, and the gap as it closes.

Run it with matplotlib installed (``pip install 'kernelweave[plot]'``): ``python docs/images/weights.py``.
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from kernelweave import KernelBank, MKLClassifier
from kernelweave.geometry import BoxSimplex
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge
from kernelweave.solvers import BlockDescent, Newton, ProjectedGradient

COLOURS = {"mean": "#2a78b5", "error": "#c2571a", "worst": "#3a8a4d"}
STYLES = {0.25: ":", 1.0: "--", 4.0: "-"}
INK, FAINT = "#333333", "#dddddd"
THETA_SHOWN = 1.0


def main():
    plt.switch_backend("Agg")
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    views = {name: slice(10 * k, 10 * k + 10) for k, name in enumerate(COLOURS)}
    bank = KernelBank.per_view([Gaussian(scale=s) for s in STYLES], views=views)
    thetas = np.linspace(1.0 / 9.0, 0.8, 40)
    models = [MKLClassifier(bank, learner=Hinge(C=10.0), geometry=BoxSimplex(theta=t)) for t in thetas]
    weights = np.array([model.fit(X, y).kernel_weights_ for model in models])

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7), width_ratios=(3, 2), layout="constrained")
    draw_paths(left, thetas, weights)
    draw_gaps(right, bank, X, y)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
    figure.savefig(Path(__file__).with_name("weights.png"), dpi=130)


def draw_paths(axes, thetas, weights):
    kernels = [(view, s) for view in COLOURS for s in STYLES]
    axes.plot(thetas, thetas, color=FAINT, linewidth=1.0)
    axes.annotate(
        "the cap θ", (0.66, 0.66), color="#888888", ha="right", va="bottom", rotation=33, fontsize=8
    )
    for (view, s), path in zip(kernels, weights.T, strict=True):
        axes.plot(thetas, path, color=COLOURS[view], linestyle=STYLES[s], linewidth=1.8)
    for view, colour in COLOURS.items():
        axes.plot([], [], color=colour, linewidth=3, label=view)
    for s, style in STYLES.items():
        axes.plot([], [], color=INK, linestyle=style, linewidth=1.4, label=f"scale {s:g}")
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    axes.set_xlim(thetas[0], thetas[-1])
    axes.set_ylim(0.0, 0.75)
    axes.set_xlabel("θ: 1/9 is the average kernel, 1 the simplex")
    axes.set_ylabel("kernel weight")
    axes.set_title(
        "Nine kernels on three views: weights as the cap rises", fontsize=10, loc="left", color=INK
    )


def draw_gaps(axes, bank, X, y):
    solvers = ((Newton, "-"), (ProjectedGradient, "--"), (BlockDescent, ":"))
    for solver, style in solvers:
        model = MKLClassifier(
            bank,
            learner=Hinge(C=10.0),
            geometry=BoxSimplex(theta=THETA_SHOWN),
            solver=solver(max_iter=500),
            tol=1e-6,
        ).fit(X, y)
        gaps = [record.certificate.relative_gap for record in model.history_]
        label = f"{solver.__name__} ({len(gaps)})"
        axes.semilogy(range(1, len(gaps) + 1), gaps, color=INK, linestyle=style, linewidth=1.6, label=label)
    axes.set_xscale("log")
    axes.axhline(1e-6, color=FAINT, linewidth=1.0)
    axes.set_xlabel("machines solved")
    axes.set_ylabel("relative duality gap")
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(f"The certificate closing at θ = {THETA_SHOWN:g}", fontsize=10, loc="left", color=INK)


if __name__ == "__main__":
    main()
