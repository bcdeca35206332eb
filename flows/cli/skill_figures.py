"""Evaluating skills from the command line, and their figures for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.launch import orchestration
from flows.cli.published import Figures, ranged, show_published
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_skills(params: "Params", session: Session, out: Path) -> None:
    """Evaluate the skills of some parameters, build what is missing, and write skills.json."""
    from flows.settings import make_folder

    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_skills import evaluate_skills as flow

        made = flow(params, settings)
    show_published(session, made, out, SKILLS)


def skill_lines(result: dict[str, Any]) -> list[str]:
    """The figures of an evaluation of skills, for people: shares with intervals."""
    rows: list[tuple[str, ...]] = [("", "range", "tasks", "", "", "")]
    for range_, found in result["routing"].items():
        chosen, parsed = ranged(found["operation"]), ranged(found["operands"])
        rows.append(("routing", range_, f"{found['n']:,}", f"operation {chosen}", f"operands {parsed}", ""))
    for family in ("standalone", "external-skill"):
        for interface, ranges in result["families"][family].items():
            for range_, found in ranges.items():
                for rule in ("learned", "declared"):
                    whole, stop = ranged(found[rule]["whole_output"]), ranged(found[rule]["stop"])
                    name, stopped = f"{family} {interface}", f"{rule} stop {stop}"
                    nll = f"nll {found['nll']['value']:.4f}" if rule == "learned" else ""
                    rows.append((name, range_, f"{found['n']:,}", f"whole output {whole}", stopped, nll))
    for interface, ranges in result["families"]["intervention"].items():
        for range_, found in ranges.items():
            for stratum in ("differs", "equal"):
                if found[stratum]["n"]:
                    follows, stays = (ranged(found[stratum][name]) for name in ("follows", "stays"))
                    name, count = f"intervention {interface}, {stratum}", f"{found[stratum]['n']:,}"
                    rows.append((name, range_, count, f"follows {follows}", f"stays {stays}", ""))
    return columns(rows)


SKILLS = Figures("skills.json", "routing", skill_lines)
