"""Evaluating shadows from the command line, and their figures for people."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.launch import orchestration
from flows.cli.published import Figures, show_published
from flows.cli.session import Session
from flows.formatting import columns
from flows.report.alphas import CHOICES, DRIFT, GAIN, called

if TYPE_CHECKING:
    from flows.params import Params
    from store import Store

_BAR = 24
_MOST_ALPHA = 1.2
_SHOWN = 160
"""Characters of a text on a card."""


def evaluate_shadow(
    params: "Params", session: Session, out: Path, *, check: "Callable[[Store], object]"
) -> None:
    """Evaluate the shadow of some parameters, make what is missing, and write anneal.json and its page."""
    from flows.settings import make_folder

    make_folder(out, "--out")
    with orchestration(session, session.settings, check=check) as settings:
        from flows.evaluate_shadow import evaluate_shadow as flow

        made = flow(params, settings)
    retention = [source.title for source in params.anneal.retention]
    named = {"text": params.shadow.domain.title, "retention": retention}  # places, which no fingerprint holds
    show_published(session, {**made, **named}, out, ANNEAL)


def cumulate_shadows(
    params: "Params", session: Session, out: Path, *, check: "Callable[[Store], object]"
) -> None:
    """Learn the domains of some parameters one after another, and write cumulative.json and its page."""
    from flows.settings import make_folder

    make_folder(out, "--out")
    with orchestration(session, session.settings, check=check) as settings:
        from flows.cumulate_shadows import cumulate_shadows as flow

        made = flow(params, settings)
    show_published(session, made, out, CUMULATIVE)


def cumulative_lines(result: dict[str, Any]) -> list[str]:
    """What each domain gained before its turn, when it was learned and at the end, and what later ones took.

    The end is the sum of the first two less what was forgotten.
    """
    head = ("", "gain before its turn", "gain when learned", "forgotten", "gain at the end", "drift then")
    rows: list[tuple[str, ...]] = [head]
    drift = result["drift_by_stage"][1:]
    for domain, then in zip(result["order"], drift, strict=True):
        names = ("before_own_stage", "gain_own_stage", "forgotten", "gain_end")
        figures = (result["cumulative"][domain][name] for name in names)
        rows.append((domain, *(f"{figure:+.4f}" for figure in figures), f"{then:+.4f}"))
    said = (
        "before its turn: what earlier domains did; forgotten: how much later ones raised the loss again; "
        f"gain: {GAIN}, drift: {DRIFT}"
    )
    return [*columns(rows), f"nats per token; {said}"]


def anneal_lines(result: dict[str, Any]) -> list[str]:
    """Gain and drift by condition with intervals, alpha by layer, and texts continued before and after."""
    chunks, host = result["chunks"], result["host_loss"]
    rows: list[tuple[str, ...]] = [("", "gain", "", "z", "drift", "")]
    for condition, gain in sorted(result["gain"].items(), key=_place):
        drift = result["drift"][condition]
        rows.append((called(condition), *_ranged(gain), f"{gain['z']:+.1f}", *_ranged(drift)))
    lines = [
        f"{chunks['domain']} sealed chunks, host {host['domain']:.4f}; {chunks['retention']} of retention, "
        f"host {host['retention']:.4f}; nats per token",
        f"gain: {GAIN}; drift: {DRIFT}",
        *columns(rows),
    ]
    for other, found in sorted(result["consolidated_over"].items(), key=_place):
        value, between = _ranged(found)
        lines.append(f"consolidated over {called(other)}: {value} {between}")
    ratio = result["anatomy"]["late_to_early"]
    lines += ["", *alpha_lines(result["anatomy"]["layers"])]
    lines.append(f"late to early median: {'-' if ratio is None else f'{ratio:.2f}'}")
    for card in result["cards"]:
        lines += ["", *(f"{name:<9} {shown}" for name, shown in card_lines(card))]
    return lines


def card_lines(card: dict[str, str]) -> list[tuple[str, str]]:
    """The end of a beginning, and the starts of what goes on from there: in truth, before and after."""
    texts = {name: " ".join(card[name].split()) for name in ("beginning", "truth", "before", "after")}
    beginning = texts.pop("beginning")
    cut = beginning if len(beginning) <= _SHOWN else f"... {beginning[-_SHOWN:]}"
    goes_on = [
        (name, text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...") for name, text in texts.items()
    ]
    return [("beginning", cut), *goes_on]


def alpha_lines(layers: list[dict[str, float]]) -> list[str]:
    """Alpha of each layer as a bar up to 1.2, and the norm of its D."""
    rows = [
        (
            f"layer {one['layer']}",
            f"{one['alpha']:.3f}",
            "#" * round(_BAR * one["alpha"] / _MOST_ALPHA),
            f"norm {one['norm']:.3f}",
        )
        for one in layers
    ]
    return columns(rows)


def _place(named: tuple[str, Any]) -> tuple[int, str]:
    """Where a choice of alphas stands among others, by its name."""
    order = list(CHOICES)
    return (order.index(named[0]) if named[0] in order else len(order)), named[0]


def _ranged(figure: dict[str, float]) -> tuple[str, str]:
    return f"{figure['value']:+.4f}", f"[{figure['low']:+.4f}, {figure['high']:+.4f}]"


def _cumulative_page(result: dict[str, Any], out: Path) -> Path:
    from flows.report.forgetting import write_cumulative_page

    return write_cumulative_page(result, out)


def _anneal_page(result: dict[str, Any], out: Path) -> Path:
    from flows.report.annealing import write_anneal_page

    return write_anneal_page(result, out)


CUMULATIVE = Figures("cumulative.json", "cumulative", cumulative_lines, _cumulative_page)
ANNEAL = Figures("anneal.json", "anatomy", anneal_lines, _anneal_page)
