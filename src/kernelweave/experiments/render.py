"""Tables as Markdown and as a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from kernelweave.experiments.experiment import Experiment, Grid, Records

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
.wide {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-size: .85rem; }}
td, th {{ padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }}
td:first-child, th:first-child {{ text-align: left; }} img {{ max-width: 100%; background: #fff; }}
</style></head><body>
{body}
</body></html>
"""


def write(
    experiment: Experiment,
    records: Records,
    folder: Path,
    *,
    command: str,
    contexts: Sequence[dict[str, Any]] = (),
) -> list[Path]:
    """Write the tables as Markdown and HTML, and the figures, to a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = draw(experiment, records, folder)
    names = [figure.name for figure in figures]
    page, text = folder / f"{experiment.id}.html", folder / f"{experiment.id}.md"
    text.write_text(markdown(experiment, records, names, command, contexts), encoding="utf-8")
    page.write_text(html(experiment, records, names, command, contexts), encoding="utf-8")
    return [text, page, *figures]


def draw(experiment: Experiment, records: Records, folder: Path) -> list[Path]:
    """Draw the figures of an experiment where matplotlib is installed; return their files."""
    files = []
    for place, view in enumerate(experiment.views):
        file = folder / f"{experiment.id}{f'-{place + 1}' if place else ''}.svg"
        try:
            if view.draw(records, file):
                files.append(file)
        except ImportError:
            return []
    return files


def markdown(
    experiment: Experiment,
    records: Records,
    figures: Sequence[str],
    command: str,
    contexts: Sequence[dict[str, Any]],
) -> str:
    """Return a section of Markdown about an experiment."""
    parts = [f"## {experiment.id}: {experiment.title}", f"{experiment.source}. Run with `{command}`."]
    parts += [_grid_markdown(grid) for grid in _grids(experiment, records)]
    parts += [f"![{experiment.title}]({name})" for name in figures]
    parts.append("Differences from the paper's protocol:")
    parts.append("\n".join(f"- {line}" for line in experiment.differences))
    parts += [_versions(context) for context in contexts]
    return "\n\n".join(part for part in parts if part) + "\n"


def html(
    experiment: Experiment,
    records: Records,
    figures: Sequence[str],
    command: str,
    contexts: Sequence[dict[str, Any]],
) -> str:
    """Return a whole page about an experiment."""
    parts = [
        f"<h1>{escape(experiment.id)}: {escape(experiment.title)}</h1>",
        f"<p>{escape(experiment.source)}. Run with <code>{escape(command)}</code>.</p>",
        *(_grid_html(grid) for grid in _grids(experiment, records)),
        *(f'<p><img src="{escape(name)}" alt="{escape(experiment.title)}"></p>' for name in figures),
        "<h2>Differences from the paper's protocol</h2>",
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in experiment.differences) + "</ul>",
        *(f"<p>{escape(_versions(context))}</p>" for context in contexts),
    ]
    return PAGE.format(title=escape(experiment.id), body="\n".join(parts))


def _grids(experiment: Experiment, records: Records) -> list[Grid]:
    return [grid for view in experiment.views for grid in view.tables(records)]


def _grid_markdown(grid: Grid) -> str:
    lines = [_line(grid.header), _line(["---", *["---:"] * (len(grid.header) - 1)])]
    lines += [_line(row) for row in grid.rows]
    return "\n\n".join([f"**{grid.title}**", "\n".join(lines), *grid.remarks])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _grid_html(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in grid.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in grid.rows
    )
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in grid.remarks)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h2>{escape(grid.title)}</h2><div class="wide">{table}</div>{remarks}'


def _versions(context: dict[str, Any]) -> str:
    return "Measured with " + ", ".join(f"{name} {version}" for name, version in context.items()) + "."
