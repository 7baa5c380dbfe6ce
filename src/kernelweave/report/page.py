"""One page of what was found: tables, charts, and the little script that moves them."""

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
from kernelweave.evaluation import paired, summary
from kernelweave.report import drawing
from kernelweave.report.baselines import AVERAGE, CONCATENATED, SINGLE
from kernelweave.report.study import Study

PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn")
ASSETS = "assets"


def render(
    found: Study, *, title: str, data: Mapping[str, Any], samples: Sequence[str], today: date | None
) -> str:
    """Return the page; ``samples`` are the names of all rows, ``data`` is what to tell of the table."""
    template, style, script = (_asset(name) for name in ("page.html", "style.css", "page.js"))
    doubtful = [] if found.doubt is None else [samples[row] for row in found.doubt.rows]
    charts = {
        "scores": drawing.scores_chart(found),
        "weights": drawing.weights_chart(found),
        "costs": drawing.costs_chart(found),
        "path": drawing.path_chart(found),
        "calibration": drawing.calibration_chart(found),
        "errors": drawing.errors_chart(found),
        "doubt": drawing.doubt_chart(found, doubtful),
        "certificate": drawing.certificate_chart(found),
    }
    page: str = (
        _environment()
        .from_string(template)
        .render(
            title=title,
            found=found,
            data=data,
            charts=charts,
            scores=_scores(found),
            weights=_weights(found),
            views=_views(found),
            path=None if charts["path"] is None else _path(found, charts["path"].places),
            confusion=_confusion(found),
            doubt=_doubt(found, doubtful),
            certificate=_certificate(found),
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
    return files(__package__).joinpath(ASSETS, name).read_text(encoding="utf-8")


def number(value: Any) -> str:
    """Return a number with three or four digits that matter."""
    value = float(value)
    if not np.isfinite(value):
        return "∞" if value > 0 else "–"
    text = f"{value:.1e}" if value and (abs(value) < 1e-3 or abs(value) >= 1e5) else f"{value:.4g}"
    return text.replace("-", "−")


def three_decimals(value: Any) -> str:
    """Return a score or a weight; what rounds to nothing has no sign."""
    return f"{round(float(value), 3) + 0.0:.3f}".replace("-", "−")


def _scores(found: Study) -> list[dict[str, Any]]:
    contest = found.contest
    own = contest.scores[contest.first]
    rows = []
    for name, scores in contest.scores.items():
        told = summary(scores)
        row = {"name": name, "mean": told.mean, "deviation": told.deviation, "gain": None}
        row["baseline"] = name.startswith((AVERAGE, SINGLE, CONCATENATED))  # named in the headline too
        if name != contest.first and len(scores) > 1:
            row["gain"] = paired(own, scores, test_share=contest.test_share)
        rows.append(row)
    return sorted(rows, key=lambda row: row["name"] != contest.first)


def _weights(found: Study) -> list[dict[str, Any]]:
    s = None if found.stability is None else found.stability.over_classes()
    spread = None if s is None else np.array([s.lower, s.upper, s.frequency])
    views = getattr(found.machine.bank_, "view_names", found.machine.kernel_names_)
    return [
        {
            "name": name,
            "view": view,
            "weight": float(found.weights[m]),
            "spread": None if spread is None else spread[:, m].tolist(),
        }
        for m, (name, view) in enumerate(zip(found.machine.kernel_names_, views, strict=True))
    ]


def _views(found: Study) -> list[dict[str, Any]]:
    kernels = _weights(found)
    total = sum(found.importance.values()) if found.importance else 0.0
    costs = {} if found.costs is None else found.costs.costs()
    spread = {} if found.stability is None else found.stability.view_weights()
    rows = []
    for view in dict.fromkeys(kernel["view"] for kernel in kernels):
        moved = None if not found.importance or not total else found.importance[str(view)] / total
        rows.append(
            {
                "name": view,
                "weight": sum(kernel["weight"] for kernel in kernels if kernel["view"] == view),
                "spread": spread[view][1:] if view in spread else None,
                "importance": moved,
                "cost": costs.get(str(view)),
            }
        )
    return rows


def _path(found: Study, places: Sequence[float]) -> dict[str, Any]:
    walk = found.walk
    assert walk is not None
    top = float(walk.weights.max()) or 1.0
    drawn = drawing.drawn_lines(walk).tolist()
    used = (walk.weights > 1e-6 * walk.weights.max(axis=1, keepdims=True)).sum(axis=1)
    steps = [
        {
            "value": number(value),
            "score": three_decimals(score),
            "gap": number(gap),
            "used": int(count),
            "place": place,
            "weights": [three_decimals(w) for w in weights],
            "widths": [round(100.0 * float(w) / top, 2) for w in weights],
        }
        for value, score, gap, count, place, weights in zip(
            walk.course.values, walk.held_out, walk.gaps, used, places, walk.weights, strict=True
        )
    ]
    return {
        "symbol": walk.course.symbol,
        "meaning": walk.course.meaning,
        "metric": found.metric,
        "here": walk.here,
        "best": walk.best,
        "names": list(walk.names),
        "lines": [drawn.index(m) if m in drawn else None for m in range(len(walk.names))],
        "steps": steps,
        "start": places[0],
    }


def _confusion(found: Study) -> dict[str, Any] | None:
    if found.confusion is None or found.classes is None:
        return None
    counts: AnyArray = found.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    labels = [str(label) for label in found.classes]
    return {"labels": labels, "rows": list(zip(labels, counts.tolist(), shares.tolist(), strict=True))}


def _doubt(found: Study, names: Sequence[str]) -> dict[str, Any] | None:
    doubt = found.doubt
    if doubt is None:
        return None
    parts = doubt.parts if len(doubt.parts.names) <= drawing.MOST_BARS else doubt.parts.by_view()
    rows = [
        {
            "name": name,
            "truth": str(found.y[row]) if found.classes is not None else number(found.y[row]),
            "said": str(found.held.predictions[row])
            if found.classes is not None
            else number(found.held.predictions[row]),
            "toward": toward,
            "decision": float(decision),
            "parts": values.tolist(),
            "rest": float(rest),
        }
        for name, row, toward, decision, values, rest in zip(
            names, doubt.rows, doubt.against, parts.decision, parts.values, parts.intercept, strict=True
        )
    ]
    return {
        "names": parts.names,
        "rows": rows,
        "several": found.classes is not None and len(found.classes) > 2,
    }


def _certificate(found: Study) -> dict[str, Any] | None:
    certificate = getattr(found.machine, "certificate_", None)
    if certificate is None:
        return None
    return {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": certificate.relative_gap,
        "tol": (tol := getattr(found.machine, "tol", None)),
        "closed": tol is None or certificate.relative_gap <= tol,
        "problems": len(getattr(found.machine, "certificates_", [certificate])),
        "machines": getattr(found.machine, "n_iter_", None),
        "support": len(found.machine.support_) if hasattr(found.machine, "support_") else None,
    }
