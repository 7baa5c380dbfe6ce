"""The page of the findings: tables, charts, and the small script that moves them."""

from __future__ import annotations

import hashlib
import platform
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.bank.column_table import ColumnUse
from kernelweave.evaluation import paired, summary
from kernelweave.explain.contributions import views_of_kernels
from kernelweave.report import charts
from kernelweave.report.baselines import AVERAGE, CONCATENATED, SINGLE
from kernelweave.report.columns import alike
from kernelweave.report.findings import Findings

# Of more columns than these only groups that were treated alike are shown.
MOST_COLUMNS = 500
PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn")


def render(
    found: Findings,
    *,
    title: str,
    data: Mapping[str, Any],
    samples: Sequence[str],
    today: date | None,
    columns: Sequence[ColumnUse] = (),
    lacking: Mapping[str, Any] | None = None,
) -> str:
    """Return the page; ``samples`` are the names of all rows, ``data`` the lines about the table.

    ``columns`` says what was done with every column, and ``lacking`` how many rows, and who, lack which view.
    """
    template, style, script = (_asset(name) for name in ("page.html", "style.css", "page.js"))
    doubtful = [] if found.doubt is None else [samples[row] for row in found.doubt.rows]
    drawn = {
        "scores": charts.scores_chart(found),
        "weights": charts.weights_chart(found),
        "costs": charts.costs_chart(found),
        "path": charts.path_chart(found),
        "calibration": charts.calibration_chart(found),
        "errors": charts.errors_chart(found),
        "doubt": charts.doubt_chart(found, doubtful),
        "certificate": charts.certificate_chart(found),
    }
    page: str = (
        _environment()
        .from_string(template)
        .render(
            title=title,
            found=found,
            data=data,
            charts=drawn,
            scores=_scores(found),
            weights=_weights(found),
            views=_views(found),
            path=None if drawn["path"] is None else _path(found, drawn["path"].marks),
            confusion=_confusion(found),
            doubt=_doubtful_samples(found, doubtful),
            certificate=_certificate(found),
            columns=columns if len(columns) <= MOST_COLUMNS else (),
            column_groups=alike(columns),
            lacking=lacking or {},
            n_samples=len(samples),
            versions={name: version(name) for name in PACKAGES} | {"Python": platform.python_version()},
            today=today,
            style=style,
            script=script,
            script_hash=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )
    return page


def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    # Everything is escaped but what comes from the assets and from matplotlib.
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    environment.filters["score"] = three_decimals
    environment.filters["percent"] = lambda value: f"{100.0 * float(value):.0f} %"
    environment.filters["own"] = Markup
    return environment


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def number(value: Any) -> str:
    """Return a number with at most four significant digits."""
    value = float(value)
    if not np.isfinite(value):
        return "∞" if value > 0 else "–"
    text = f"{value:.1e}" if value and (abs(value) < 1e-3 or abs(value) >= 1e5) else f"{value:.4g}"
    return text.replace("-", "−")


def three_decimals(value: Any) -> str:
    """Return a score or a weight; what rounds to 0 has no sign."""
    return f"{round(float(value), 3) + 0.0:.3f}".replace("-", "−")


def _scores(found: Findings) -> list[dict[str, Any]]:
    comparison = found.comparison
    own = comparison.scores[comparison.first]
    rows = []
    for name, scores in comparison.scores.items():
        s = summary(scores)
        row = {"name": name, "mean": s.mean, "deviation": s.deviation, "gain": None}
        row["baseline"] = name.startswith((AVERAGE, SINGLE, CONCATENATED))  # named in the headline too
        if name != comparison.first and len(scores) > 1:
            row["gain"] = paired(own, scores, test_share=comparison.test_share)
        rows.append(row)
    return sorted(rows, key=lambda row: row["name"] != comparison.first)


def _weights(found: Findings) -> list[dict[str, Any]]:
    s = None if found.stability is None else found.stability.over_classes()
    spread = None if s is None else np.array([s.lower, s.upper, s.frequency])
    views = views_of_kernels(found.kernel_model)
    return [
        {
            "name": name,
            "view": view,
            "weight": float(found.weights[m]),
            "spread": None if spread is None else spread[:, m].tolist(),
        }
        for m, (name, view) in enumerate(zip(found.kernel_model.kernel_names_, views, strict=True))
    ]


def _views(found: Findings) -> list[dict[str, Any]]:
    kernels = _weights(found)
    total = sum(found.importance.values()) if found.importance else 0.0
    costs = {} if found.costs is None else found.costs.costs()
    spread = {} if found.stability is None else found.stability.view_weights()
    rows = []
    for view in dict.fromkeys(kernel["view"] for kernel in kernels):
        importance = found.importance[view] / total if found.importance and total else None
        rows.append(
            {
                "name": view,
                "weight": sum(kernel["weight"] for kernel in kernels if kernel["view"] == view),
                "spread": spread[view][1:] if view in spread else None,
                "importance": importance,
                "cost": costs.get(view),
            }
        )
    return rows


def _path(found: Findings, marks: Sequence[float]) -> dict[str, Any]:
    path = found.path
    assert path is not None
    top = float(path.weights.max()) or 1.0
    drawn = charts.drawn_lines(path).tolist()
    used = (path.weights > 1e-6 * path.weights.max(axis=1, keepdims=True)).sum(axis=1)
    steps = [
        {
            "value": number(value),
            "score": three_decimals(score),
            "gap": number(gap),
            "used": int(count),
            "place": mark,
            "weights": [three_decimals(w) for w in weights],
            "widths": [round(100.0 * float(w) / top, 2) for w in weights],
        }
        for value, score, gap, count, mark, weights in zip(
            path.parameter.values, path.held_out, path.gaps, used, marks, path.weights, strict=True
        )
    ]
    return {
        "symbol": path.parameter.symbol,
        "meaning": path.parameter.meaning,
        "metric": found.metric,
        "here": path.current,
        "best": path.best,
        "names": list(path.names),
        "lines": [drawn.index(m) if m in drawn else None for m in range(len(path.names))],
        "steps": steps,
        "start": marks[0],
    }


def _confusion(found: Findings) -> dict[str, Any] | None:
    if found.confusion is None or found.classes is None:
        return None
    counts: AnyArray = found.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    labels = [str(label) for label in found.classes]
    return {"labels": labels, "rows": list(zip(labels, counts.tolist(), shares.tolist(), strict=True))}


def _doubtful_samples(found: Findings, names: Sequence[str]) -> dict[str, Any] | None:
    doubt = found.doubt
    if doubt is None:
        return None
    parts = doubt.parts if len(doubt.parts.names) <= charts.MOST_BARS else doubt.parts.by_view()
    text = str if found.classes is not None else number
    rows = [
        {
            "name": name,
            "truth": text(found.y[row]),
            "predicted": text(found.held.predictions[row]),
            "toward": toward,
            "decision": float(decision),
            "parts": values.tolist(),
            "rest": float(rest),
        }
        for name, row, toward, decision, values, rest in zip(
            names, doubt.rows, doubt.toward, parts.decision, parts.values, parts.intercept, strict=True
        )
    ]
    return {
        "names": parts.names,
        "rows": rows,
        "several": found.classes is not None and len(found.classes) > 2,
    }


def _certificate(found: Findings) -> dict[str, Any] | None:
    certificate = getattr(found.kernel_model, "certificate_", None)
    if certificate is None:
        return None
    return {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": certificate.relative_gap,
        "tol": (tol := getattr(found.kernel_model, "tol", None)),
        "closed": tol is None or certificate.relative_gap <= tol,
        "problems": len(getattr(found.kernel_model, "certificates_", [certificate])),
        "steps": getattr(found.kernel_model, "n_iter_", None),
        "support": len(found.kernel_model.support_) if hasattr(found.kernel_model, "support_") else None,
    }
