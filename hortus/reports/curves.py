"""Line charts as SVG: no scripts, no libraries, sharp at any size."""

import html
import math
from collections.abc import Mapping, Sequence

COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#4a5568")
_WIDTH, _HEIGHT = 440, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 34
_MAX_DOTS = 60
_LARGEST, _SMALLEST = 1e300, 1e-300
_RESOLUTION = 1e-9
"""Values that differ by less, relative to their size, make a flat line: ticks need digits too."""

Point = tuple[float, float]


def chart(title: str, lines: Mapping[str, Sequence[Point]]) -> str:
    """A chart of named lines over the steps.

    Args:
        title: what is shown, also for readers who do not see it.
        lines: points (step, value) by name; those that are not finite, or hardly so, are left out.
    """
    finite = {
        name: [(x, y) for x, y in points if abs(x) < _LARGEST and abs(y) < _LARGEST]
        for name, points in lines.items()
    }
    finite = {name: points for name, points in finite.items() if points}
    everything = [point for points in finite.values() for point in points]
    if not everything:
        return ""
    xs = _Axis([x for x, _ in everything], _LEFT, _WIDTH - _RIGHT)
    ys = _Axis([y for _, y in everything], _HEIGHT - _BOTTOM, _TOP)
    parts = [*_grid(xs, ys)]
    for index, (name, points) in enumerate(finite.items()):
        parts += _line(name, points, xs, ys, _colour(name, index))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def legend(names: Sequence[str]) -> str:
    """The colours of a chart's lines, as HTML."""
    items = [
        f'<span class="key"><i style="background:{_colour(name, index)}"></i>'
        f"{html.escape(name)}</span>"
        for index, name in enumerate(names)
    ]
    return f'<div class="legend">{"".join(items)}</div>'


class _Axis:
    """Maps values to pixels, with round ticks."""

    def __init__(self, values: Sequence[float], start: float, end: float):
        low, high = min(values), max(values)
        if high - low <= max(abs(low), abs(high), _SMALLEST) * _RESOLUTION:
            margin = max(abs(low), abs(high)) * 0.1
            margin = margin if margin > _SMALLEST else 1.0
            low, high = low - margin, high + margin
        self.step = _nice((high - low) / 4)
        self.low = math.floor(low / self.step) * self.step
        self.high = math.ceil(high / self.step) * self.step
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self._start + share * (self._end - self._start), 1)

    @property
    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + index * self.step for index in range(count + 1)]


def _nice(size: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is no less."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= size * 0.999)


def _grid(xs: _Axis, ys: _Axis) -> list[str]:
    parts = []
    for tick in ys.ticks:
        y = ys(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{short(tick)}</text>')
    return parts + [
        f'<text x="{xs(tick)}" y="{_HEIGHT - 12}" text-anchor="middle">{short(tick)}</text>'
        for tick in xs.ticks
    ]


def _line(name: str, points: Sequence[Point], xs: _Axis, ys: _Axis, colour: str) -> list[str]:
    path = " ".join(f"{xs(x)},{ys(y)}" for x, y in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>']
    if len(points) <= _MAX_DOTS:
        for x, y in points:
            told = html.escape(f"{name}: {short(y)} at step {short(x)}")
            parts.append(
                f'<circle cx="{xs(x)}" cy="{ys(y)}" r="2.6" fill="{colour}">'
                f"<title>{told}</title></circle>"
            )
    return parts


def _colour(name: str, index: int) -> str:
    """The same colour for a split in all charts; others by their number."""
    return COLOURS[{"train": 0, "validation": 1}.get(name, index) % len(COLOURS)]


def short(value: float) -> str:
    """A number in few characters: 0.25, 1200, 15k, 3e-05."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) >= 10000:
        return f"{value / 1000:g}k"
    return f"{value:.4g}"
