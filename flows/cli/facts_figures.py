"""Teaching made-up facts and asking for them from the command line, and the figures for people."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.launch import orchestration
from flows.cli.published import Figures, show_published
from flows.cli.session import Session
from flows.formatting import columns
from flows.report.alphas import DRIFT

if TYPE_CHECKING:
    from flows.params import Params
    from store import Store

_PARTS = {"new": "framings that no lesson uses", "repeated_framing": "the framing that is repeated"}


def learn_facts(params: "Params", session: Session, out: Path, *, check: "Callable[[Store], object]") -> None:
    """Teach the facts of some parameters, ask for them, and write facts.json."""
    from flows.settings import make_folder

    make_folder(out, "--out")
    with orchestration(session, session.settings, check=check) as settings:
        from flows.learn_facts import learn_facts as flow

        made = flow(params, settings)
    show_published(session, made, out, FACTS)


def facts_lines(result: dict[str, Any]) -> list[str]:
    """What the host answers untaught and after each lesson, with intervals over facts, and its drift."""
    choices, (_, *lessons) = result["choices"], result["order"]
    lines = [
        f"{len(result['facts'])} made-up facts, shadows at full strength, nats per token of the answer; "
        f"drift of retention text: {DRIFT}"
    ]
    rows: list[tuple[str, ...]] = [("lesson", "tokens", "steps", "said", "drift", "")]
    for lesson in lessons:
        one, drift = result["lessons"][lesson], result["drift"][lesson]
        steps = f"{one['chunks']}{', then stopped' if one['stopped'] else ''}"
        between = f"[{drift['low']:+.4f}, {drift['high']:+.4f}]"
        rows.append(
            (
                *(lesson, f"{one['tokens']:,}", steps, f"{one['mentions']:.0f} times a fact"),
                *(f"{drift['value']:+.4f}", between),
            )
        )
    lines += columns(rows)
    for part, title in _PARTS.items():
        found = result[part]
        lines += ["", f"{title}, {found['questions']} questions"]
        head = ("", "nats", "over taught", "over untaught", "said")
        lines += columns([head, *((name, *_figures(found["figures"][name])) for name in result["order"])])
        lines += columns(
            [(f"{one['of']} - {one['less']}", *_figures(one, sign="+")) for one in found["differences"]]
        )
    lines.append(
        f"a guess is right in 1 of {choices['over_taught']} (wrong answers taught of other entities), 1 of "
        f"{choices['over_untaught']} (never taught)"
    )
    return lines


def _figures(found: dict[str, Any], sign: str = "") -> tuple[str, ...]:
    return tuple(
        f"{one['value']:{sign}.{digits}f} [{one['low']:{sign}.{digits}f}, {one['high']:{sign}.{digits}f}]"
        for name, digits in (("nats", 3), ("over_taught", 2), ("over_untaught", 2), ("said", 2))
        for one in (found[name],)
    )


FACTS = Figures("facts.json", "lessons", facts_lines)
