"""The report of a run: one HTML file that needs no other, on or off line."""

import base64
import datetime
import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, TypeVar

from hortus import registry
from hortus.reports import curves, records
from hortus.reports.runs import RecordedRun, Series, best_of

_Section = TypeVar("_Section", bound=Callable[[RecordedRun], str])

_STYLE = """
:root { color-scheme: light dark; --ink: #1a202c; --soft: #5a6577; --line: #d9dee6;
  --card: #ffffff; --back: #f5f7fa; --accent: #2b6cb0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa5b5; --line: #333b47;
  --card: #1b2028; --back: #12161c; --accent: #7db3e8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 1080px; background: var(--back);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { margin: 0; font-size: 1.7rem; } h2 { margin: 2.4rem 0 .8rem; font-size: 1.15rem; }
.sub { color: var(--soft); margin: .2rem 0 1.4rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .6rem 1rem; min-width: 8.5rem; }
.tile b { display: block; font-size: 1.35rem; font-weight: 600; } .tile span { color: var(--soft); }
.grid2 { display: grid; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .8rem; } figcaption { font-weight: 600; margin-bottom: .4rem; }
figcaption small { font-weight: 400; color: var(--soft); }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--soft); }
svg .grid { stroke: var(--line); } img { max-width: 100%; height: auto; display: block; }
.wide { grid-column: 1 / -1; } .legend { margin-top: .3rem; } .key { margin-right: 1rem;
  color: var(--soft); } .key i { display: inline-block; width: .8em; height: .8em;
  border-radius: 2px; margin-right: .35em; }
table { border-collapse: collapse; width: 100%; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
th, td { text-align: left; padding: .35rem .8rem; border-bottom: 1px solid var(--line);
  vertical-align: top; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tr:last-child td { border-bottom: 0; } code, pre { font: 13px/1.45 ui-monospace, monospace; }
td code { overflow-wrap: anywhere; } .scroll { overflow-x: auto; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem;
  overflow-x: auto; } summary { cursor: pointer; color: var(--accent); margin: .8rem 0; }
"""
_LONGEST = 100 * 365 * 24 * 3600
"""Seconds that a run can take; more is a damaged record."""
_MAX_CHARTS = 24
_MAX_PICTURES = 24


_SECTIONS = registry.Registry("report section", "hortus.reports")


def register_section(title: str) -> Callable[[_Section], _Section]:
    """Decorates the function that writes a section of the report, after those that are there.

        @page.register_section("Confusions")
        def confusions(run):
            '''Which classes are taken for which.'''
            return page.table(("true", "predicted", "images"), rows_of(run.folder))

    The function receives:
        run: a `hortus.reports.runs.RecordedRun`: what training left in its folder.

    It returns HTML; an empty text leaves the section out. Text of the run's has to be escaped, as
    `table` does with its cells. Nothing may be loaded from elsewhere.

    Args:
        title: the heading, in HTML.
    """
    return registry.register(_SECTIONS, title)


def registered_sections() -> dict[str, str]:
    """What each section tells, by its title."""
    _SECTIONS.load()
    return {title: registry.summary(content) for title, content in _SECTIONS.items()}


def render(run: RecordedRun) -> str:
    """The whole page."""
    _SECTIONS.load()
    sections = [_section(title, content(run)) for title, content in _SECTIONS.items()]
    return document(f"{run.name}: hortus report", _head(run) + "".join(sections))


def document(title: str, body: str) -> str:
    """A page with the reports' style; nothing in it is loaded from elsewhere."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]], code_first: bool = False) -> str:
    """A table; cells that are numbers stand to the right."""
    is_number = [
        bool(rows) and all(isinstance(row[index], (int, float)) for row in rows)
        for index in range(len(headings))
    ]
    head = "".join(
        f"<th{' class=n' if number else ''}>{html.escape(heading)}</th>"
        for heading, number in zip(headings, is_number, strict=True)
    )
    lines = []
    for row in rows:
        cells = []
        for index, cell in enumerate(row):
            text = curves.short(cell) if isinstance(cell, (int, float)) else html.escape(str(cell))
            if code_first and index == 0:
                text = f"<code>{text}</code>"
            cells.append(f"<td{' class=n' if is_number[index] else ''}>{text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "".join(lines)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}" if content else ""


def _head(run: RecordedRun) -> str:
    wanted = run.config.get("trainer.train_steps")
    steps = f"{run.step:,}" + (f" of {wanted:,}" if isinstance(wanted, int) and wanted > 0 else "")
    tiles = [("steps", steps)]
    if run.seconds and run.seconds < _LONGEST:
        tiles.append(("time", str(datetime.timedelta(seconds=round(run.seconds)))))
    metric = run.config.get("trainer.best_checkpoint_eval_metric")
    best = records.number(run.best.get(metric)) if isinstance(metric, str) else None
    if best is not None:
        tiles.append((f"best {metric}", f"{best:.4g}"))
    losses = run.series("train").get("training_loss") or run.series("train").get("loss")
    if losses:
        tiles.append(("training loss", curves.short(losses[-1][1])))
    shown = "".join(
        f'<div class="tile"><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>'
        for name, value in tiles
    )
    made = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    return (
        f'<h1>{html.escape(run.name)}</h1><p class="sub"><code>{html.escape(run.folder)}</code>, '
        f'as of {made}</p><div class="tiles">{shown}</div>'
    )


@register_section("Metrics")
def _metric_table(run: RecordedRun) -> str:
    """The last and the best value of each metric of validation."""
    rows = []
    for name, series in run.series("validation").items():
        step, value = best_of(name, series)
        rows.append((name, series[-1][1], value, step))
    if not rows:
        return "<p>No evaluation yet.</p>"
    return table(("validation", "last", "best", "at step"), rows)


@register_section("Curves")
def _charts(run: RecordedRun) -> str:
    """What was logged, step by step."""
    train, validation = run.series("train"), run.series("validation")
    figures = []
    for title, lines in _pairs(train, validation):
        drawn = curves.chart(title, lines)
        if drawn and any(len(points) > 1 for points in lines.values()):
            figures.append(
                f"<figure><figcaption>{html.escape(title)}</figcaption>{drawn}"
                f"{curves.legend(list(lines))}</figure>"
            )
    left = len(figures) - _MAX_CHARTS
    note = f"<p>{left} more in TensorBoard.</p>" if left > 0 else ""
    return f'<div class="grid2">{"".join(figures[:_MAX_CHARTS])}</div>{note}' if figures else ""


def _pairs(
    train: dict[str, Series], validation: dict[str, Series]
) -> Iterator[tuple[str, dict[str, Series]]]:
    """Charts by title: what training and validation both have goes together, losses first."""
    loss = {
        "train": train.get("training_loss", []),
        "validation": validation.get("validation_loss", []),
    }
    loss = {name: series for name, series in loss.items() if series}
    if loss:
        yield "loss", loss
    for name, series in validation.items():
        # COCO's metrics are -1 where there is nothing to measure, such as no large objects.
        if name == "validation_loss" or all(value == -1 for _, value in series):
            continue
        lines = {"train": train[name]} if name in train else {}
        yield name, {**lines, "validation": series}
    for name, series in train.items():
        if name != "training_loss" and name not in validation:
            yield name, {"train": series}


@register_section("Pictures")
def _pictures(run: RecordedRun) -> str:
    """What the task drew at its last evaluation."""
    pictures = run.pictures()
    figures = []
    for picture in pictures[:_MAX_PICTURES]:
        source = f"data:image/png;base64,{base64.b64encode(picture.png).decode()}"
        figures.append(
            f'<figure class="wide"><figcaption>{html.escape(picture.tag)} '
            f"<small>step {picture.step:,}</small></figcaption>"
            f'<img alt="{html.escape(picture.tag)}" src="{source}"></figure>'
        )
    return f'<div class="grid2">{"".join(figures)}</div>' if figures else ""


@register_section("Config")
def _config(run: RecordedRun) -> str:
    """What was set, by whom, and the whole config."""
    origins = records.mapping(run.starts[-1].get("origins")) if run.starts else {}
    rows = [
        (path, _text(run.config[path]), origin)
        for path, origin in origins.items()
        if path in run.config
    ]
    shown = table(("what was set", "value", "by"), rows, code_first=True) if rows else ""
    return (
        f"{shown}<details><summary>The whole config</summary>"
        f"<pre>{html.escape(run.config_text)}</pre></details>"
    )


@register_section("How it was run")
def _starts(run: RecordedRun) -> str:
    """Commands, machine and packages."""
    starts = run.starts
    rows = [(_when(start.get("time")), str(start.get("command", ""))) for start in starts]
    if not rows:
        return ""
    facts = records.mapping(starts[-1].get("machine"))
    installed = records.mapping(facts.get("packages"))
    packages = ", ".join(f"{name} {found}" for name, found in installed.items())
    machine = [
        ("experiment", starts[-1].get("experiment")),
        ("engine", starts[-1].get("engine")),
        ("Python", facts.get("python")),
        ("system", facts.get("system")),
        ("processor", _processor(facts)),
        ("packages", packages),
    ]
    known = [(name, str(value)) for name, value in machine if value]
    return table(("started", "command"), rows) + "<p></p>" + table(("machine", ""), known)


def _when(time: Any) -> str:
    """A moment, as a reader writes it; empty for what is none."""
    try:
        moment = datetime.datetime.fromtimestamp(records.finite(time) or 0)
    except (ValueError, OverflowError, OSError):  # before the year 1, or after 9999
        return ""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _processor(facts: dict[str, Any]) -> Optional[str]:
    if "processor" not in facts:
        return None
    return f"{facts['processor']}, {facts.get('cpus')} CPUs, {facts.get('memory_gib')} GiB"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
