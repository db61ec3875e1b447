"""Several runs side by side: their metrics, and where their configs differ."""

from collections.abc import Sequence
from typing import Any

from hortus.reports import curves, page
from hortus.reports.runs import RecordedRun, Series, best_of

ABSENT = "-"
_NOT_TOLD = ("trainer.checkpoint_interval", "trainer.summary_interval", "trainer.steps_per_loop")
"""How often a run reports is no difference between experiments."""


def names(runs: Sequence[RecordedRun]) -> list[str]:
    """What to call the runs: their folders' names, or the whole paths where those are alike."""
    short = [run.name for run in runs]
    return short if len(set(short)) == len(short) else [run.folder for run in runs]


def metric_rows(runs: Sequence[RecordedRun]) -> list[tuple[str, ...]]:
    """Each metric of the evaluations: the best value of every run, and its step."""
    series = [run.series("validation") for run in runs]
    rows = []
    for name in dict.fromkeys(name for each in series for name in each):
        cells = [_best(name, each.get(name)) for each in series]
        rows.append((name, *cells))
    return rows


def config_rows(runs: Sequence[RecordedRun]) -> list[tuple[str, ...]]:
    """Each value of the configs that is not the same in all runs."""
    rows = []
    for path in dict.fromkeys(path for run in runs for path in run.config):
        values = [_shown(run.config.get(path, ABSENT)) for run in runs]
        if len(set(values)) > 1 and path not in _NOT_TOLD:
            rows.append((path, *values))
    return rows


def render(runs: Sequence[RecordedRun]) -> str:
    """The comparison as a page, with the curves of all runs."""
    headings, body = ("", *names(runs)), "<h1>Runs side by side</h1>"
    body += "<h2>Best of each metric</h2>" + page.table(headings, metric_rows(runs))
    figures = []
    series = {name: run.series("validation") for name, run in zip(names(runs), runs, strict=True)}
    for metric in dict.fromkeys(metric for each in series.values() for metric in each):
        lines = {name: each[metric] for name, each in series.items() if metric in each}
        if any(len(points) > 1 for points in lines.values()):
            figures.append(
                f"<figure><figcaption>{metric}</figcaption>{curves.chart(metric, lines)}"
                f"{curves.legend(list(lines))}</figure>"
            )
    if figures:
        body += f'<h2>Curves</h2><div class="grid2">{"".join(figures)}</div>'
    rows = config_rows(runs)
    body += "<h2>What differs in the configs</h2>"
    body += page.table(headings, rows, code_first=True) if rows else "<p>Nothing.</p>"
    return page.document("hortus: runs side by side", body)


def _best(name: str, series: "Series | None") -> str:
    if not series:
        return ABSENT
    step, value = best_of(name, series)
    return f"{value:.4g} @ {step}"


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)
