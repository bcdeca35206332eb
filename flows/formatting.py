"""Figures with their units, rows as aligned lines, and text of unknown origin made visible."""

import json
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

MISSING = "–"
_SPACE = "\N{NO-BREAK SPACE}"
_SURE, _FAIR = 0.9, 0.5
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
# Controls, format characters (bidirectional overrides among them), surrogates, private use, unassigned,
# line and paragraph separators: none of them leaves a mark of its own on a page.
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_SPELLED = {"\n": "↵\n", "\t": "⇥\t", "\x7f": "␡"}


def visible(text: str) -> str:
    """Show what a reader would not see: control pictures for controls, code points for the rest.

    A line break stays one after its sign, so that preformatted text keeps its lines. The result has no
    control character but line break and tab, and can always be encoded as UTF-8.
    """
    return text if text.isprintable() else text.translate(_SIGNS)


def printable(text: str) -> str:
    """Like `visible`, for a terminal: no escape sequence survives, line breaks and tabs stay as they are."""
    return text if text.isprintable() else text.translate(_SIGNS_IN_LINES)


def one_line(text: str, most: int = 200) -> str:
    """Visible text without line breaks, cut to `most` characters with an ellipsis."""
    line = visible(text[: most + 1]).replace("\n", "").replace("\t", "")
    return line if len(line) <= most else line[: most - 1] + "…"


def _sign(character: str) -> str:
    if character in _SPELLED:
        return _SPELLED[character]
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    if ord(character) < 0x20:
        return chr(0x2400 + ord(character))
    return f"⟨U+{ord(character):04X}⟩"


class _Signs(dict[int, str]):
    """A table for `str.translate` that is filled as characters come up; those in `kept` stay."""

    def __init__(self, kept: str = "") -> None:
        super().__init__({ord(character): character for character in kept})

    def __missing__(self, code: int) -> str:
        sign = self[code] = _sign(chr(code))
        return sign


_SIGNS, _SIGNS_IN_LINES = _Signs(), _Signs("\n\t")


def number(value: object) -> float | None:
    """The value if it is a finite number, None otherwise (missing, null, no figure, or beyond a float)."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number with more digits than a float can hold
        return None


def count(value: object) -> str:
    """A number with separators: whole, or with three digits where a mean is small and not whole."""
    given = number(value)
    if given is None:
        return MISSING
    return f"{given:,.0f}" if float(given).is_integer() or abs(given) >= 100 else f"{given:.3g}"


def counted(amount: int, noun: str) -> str:
    """An amount with its noun, in the plural unless it is one: `1 pack`, `1,200 packs`."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def share(value: object) -> str:
    """A share in [0, 1] as percent; never rounded up to 100 % where something is missing."""
    given = number(value)
    if given is None:
        return MISSING
    percent = 100 * given
    if 99.9 < percent < 100:
        return f"{min(percent, 99.99):.2f}{_SPACE}%"
    return f"{percent:.1f}{_SPACE}%"


def nats(value: object) -> str:
    """A log loss or a difference of two, in nats, without its unit."""
    given = number(value)
    # A true minus sign; and no "-0.00".
    return MISSING if given is None else f"{round(given, 2) + 0.0:.2f}".replace("-", "−")


def interval(value: object) -> str:
    """Bounds of an interval of nats, or the sign for missing."""
    bounds = pair(value)
    return MISSING if bounds is None else f"{nats(bounds[0])} to {nats(bounds[1])}"


def pair(value: object) -> tuple[float, float] | None:
    """The two numbers of `[low, high]`, None if the value is anything else."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    low, high = number(value[0]), number(value[1])
    return None if low is None or high is None else (low, high)


def size(value: object) -> str:
    """Bytes in binary units, three digits or so."""
    given = number(value)
    if given is None:
        return MISSING
    unit = 0
    while given >= 1024 and unit < len(_BYTE_UNITS) - 1:
        given, unit = given / 1024, unit + 1
    if unit == 0:
        return f"{given:,.0f}{_SPACE}B"
    return f"{given:.{0 if given >= 100 else 1}f}{_SPACE}{_BYTE_UNITS[unit]}"


def milliseconds(value: object) -> str:
    """A latency in milliseconds."""
    given = number(value)
    if given is None:
        return MISSING
    return f"{given:,.{2 if given < 1 else 1 if given < 100 else 0}f}{_SPACE}ms"


def seconds(value: object) -> str:
    """A duration in seconds, minutes or hours."""
    given = number(value)
    if given is None:
        return MISSING
    if given < 59.95:
        return f"{given:.1f}{_SPACE}s"
    minutes, rest = divmod(round(given), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (f"{hours}", "h", f"{minutes:02d}", "min") if hours else (f"{minutes}", "min", f"{rest:02d}", "s")
    return _SPACE.join(parts)


def confidence_level(confidence: float) -> Literal["sure", "fair", "doubtful"]:
    """A decoder's confidence in a token, in [0, 1], as a word."""
    return "sure" if confidence >= _SURE else "fair" if confidence >= _FAIR else "doubtful"


def section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A nested object, empty if it is missing, null or no object."""
    value = values.get(name)
    return value if isinstance(value, Mapping) else {}


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted names and JSON values of nested mappings, sorted by name; texts are left bare."""
    for name in sorted(values):
        value = values[name]
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
            yield f"{prefix}{name}", text


def columns(rows: Sequence[Sequence[Any]], head: Sequence[str] | None = None) -> list[str]:
    """Rows as aligned lines, numbers to the right; nothing is cut, so that ids can be copied."""
    if not rows:
        return []
    cells = [[f"{value:,}" if isinstance(value, int) else str(value) for value in row] for row in rows]
    cells = [list(head), *cells] if head else cells
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    right = [all(isinstance(row[i], int) for row in rows) for i in range(len(widths))]
    return [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
