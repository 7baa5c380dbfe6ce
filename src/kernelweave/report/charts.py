"""The charts of a report, each drawn from the findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._typing import Indices, Vector
from kernelweave.evaluation import Paired, paired
from kernelweave.plots import (
    CertificateDisplay,
    ComparisonDisplay,
    ContributionsDisplay,
    PathDisplay,
    WeightsDisplay,
)
from kernelweave.plots._base import COLOURS
from kernelweave.report.findings import Findings
from kernelweave.report.svg import Chart, distinct_labels, short_label, svg_chart
from kernelweave.report.weight_path import WeightPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More kernels than this do not fit beside one axis, or into one legend; tables have them all.
MOST_BARS, MOST_PARTS, MOST_LINES = 24, 6, 12


def scores_chart(found: Findings) -> Chart | None:
    """How far the model is from each rival, on the same splits."""
    comparison = found.comparison
    own = comparison.scores[comparison.first]
    if len(comparison.scores) < 2 or len(own) < 2:
        return None
    rivals = {
        name: paired(own, scores, test_share=comparison.test_share)
        for name, scores in comparison.scores.items()
        if name != comparison.first
    }
    label = f"{found.metric} of {comparison.first} minus that of …"

    def draw(ax: Axes) -> None:
        _draw_differences(ax, rivals, label)

    title = f"Paired differences in {found.metric}: {comparison.first} minus the others, with 95 % intervals"
    return svg_chart(draw, "scores", title, 60.0 + 26.0 * len(rivals))


def weights_chart(found: Findings) -> Chart:
    """The weights of the kernels, the heaviest where there are many."""
    order = np.sort(np.argsort(-found.weights, kind="stable")[:MOST_BARS])
    names = distinct_labels(found.kernel_model.kernel_names_[m] for m in order)
    extra: list[Vector] = []
    if found.stability is not None:
        s = found.stability.over_classes()
        extra = [s.lower[order], s.upper[order], s.frequency[order]]
    title = "Kernel weights" + (" with bootstrap intervals and selection frequency" if extra else "")

    def draw(ax: Axes) -> None:
        WeightsDisplay(names, found.weights[order], *extra).plot(ax=ax)
        ax.margins(x=0.12)

    return svg_chart(draw, "weights", title, 50.0 + 19.0 * len(order))


def costs_chart(found: Findings) -> Chart | None:
    """What leaving a view out costs."""
    if found.costs is None:
        return None
    costs = found.costs.costs()

    def draw(ax: Axes) -> None:
        _draw_differences(ax, costs, f"{found.metric} lost without the view")

    return svg_chart(
        draw, "costs", "What leaving each view out costs, with 95 % intervals", 60.0 + 26.0 * len(costs)
    )


def path_chart(found: Findings) -> Chart | None:
    """The weights along the parameter of the geometry, with a line that the slider moves."""
    path = found.path
    if path is None:
        return None
    values, symbol = path.parameter.values, path.parameter.symbol
    heavy = drawn_lines(path)

    def draw(ax: Axes) -> None:
        names = distinct_labels(path.names[m] for m in heavy)
        PathDisplay(symbol, values, path.weights[:, heavy], names).plot(ax=ax)
        if values[0] > values[-1]:
            ax.invert_xaxis()
        if (legend := ax.get_legend()) is not None:
            legend.remove()  # the bars beside it have the colours
        ax.set_xlabel(symbol)

    return svg_chart(draw, "path", f"Kernel weights along {symbol}", 220.0, marks=values)


def drawn_lines(path: WeightPath) -> Indices:
    """Return the kernels that have a line in the path, in order: those of the largest weight somewhere."""
    return np.sort(np.argsort(-path.weights.max(axis=0), kind="stable")[:MOST_LINES])


def calibration_chart(found: Findings) -> Chart | None:
    """How often predictions came true against their probability."""
    curve = found.calibration
    if curve is None:
        return None

    def draw(ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], ":", color="black", lw=1.0, label="perfect")
        ax.plot(curve.predicted, curve.observed, "o-", color=COLOURS[0], ms=5, label="held out")
        ax.set(xlabel=short_label(curve.event), ylabel="share that came true", xlim=(0, 1), ylim=(0, 1.02))
        ax.legend(frameon=False)

    return svg_chart(draw, "calibration", "Calibration on held-out rows", 240.0)


def errors_chart(found: Findings) -> Chart | None:
    """Predicted against true values of held-out rows."""
    if found.classes is not None:
        return None
    y, predicted = found.y, found.held.predictions

    def draw(ax: Axes) -> None:
        ends = [float(min(y.min(), predicted.min())), float(max(y.max(), predicted.max()))]
        ax.plot(ends, ends, ":", color="black", lw=1.0)
        few = np.linspace(0, len(y) - 1, min(len(y), 1000)).astype(int)  # enough to see, small enough to send
        ax.plot(y[few], predicted[few], ".", color=COLOURS[0], ms=4)
        ax.set(xlabel="true", ylabel="predicted")

    return svg_chart(draw, "errors", "Predicted against true values of held-out rows", 260.0)


def doubt_chart(found: Findings, samples: list[str]) -> Chart | None:
    """What every kernel adds to the decision of the rows in doubt; views where there are too many kernels."""
    doubt = found.doubt
    if doubt is None:
        return None
    parts = doubt.parts if len(doubt.parts.names) <= MOST_PARTS else doubt.parts.by_view()
    heavy = np.argsort(-np.abs(parts.values).mean(axis=0), kind="stable")[:MOST_PARTS]
    values, names = parts.values[:, heavy], distinct_labels(parts.names[m] for m in heavy)
    if len(heavy) < len(parts.names):
        values = np.column_stack([values, parts.values.sum(axis=1) - values.sum(axis=1)])
        names.append("all others")

    def draw(ax: Axes) -> None:
        ContributionsDisplay(values, parts.intercept, names, distinct_labels(samples)).plot(ax=ax)
        ax.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        ax.set(ylabel="", xlabel="decision value" if found.classes is not None else "prediction")

    title = "What every kernel adds to the decision of the rows in doubt"
    return svg_chart(draw, "doubt", title, 130.0 + 22.0 * len(doubt.rows))


def certificate_chart(found: Findings) -> Chart | None:
    """The two bounds against time."""
    history: Any = getattr(found.kernel_model, "history_", None)
    if not history:
        return None
    problem = 0
    if isinstance(history[0], list):
        problem = int(np.argmax([len(records) for records in history]))
        history = history[problem]
    if not hasattr(history[0], "seconds") or len(history) < 2:
        return None

    def draw(ax: Axes) -> None:
        CertificateDisplay.from_estimator(found.kernel_model, problem=problem, ax=ax)

    return svg_chart(draw, "certificate", "Upper and lower bound of the optimum against time", 210.0)


def _draw_differences(ax: Axes, found: Mapping[str, Paired], label: str) -> None:
    labelled = dict(zip(distinct_labels(found), found.values(), strict=True))
    ComparisonDisplay.from_differences(labelled, label, ax=ax)
