"""Evaluating skills from the command line, and their figures for people."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.launch import orchestration
from flows.cli.session import Session
from flows.formatting import columns

if TYPE_CHECKING:
    from flows.params import Params


def evaluate_skills(params: "Params", session: Session, out: Path) -> None:
    """Evaluate the skills of some parameters, build what is missing, and write skills.json."""
    from flows.settings import make_folder
    from store import Ref

    make_folder(out, "--out")
    with orchestration(session, session.settings) as settings:
        from flows.evaluate_skills import evaluate_skills as flow

        made = flow(params, settings)
    store = session.open_store()
    evaluation = Ref.parse(made["evaluation"])
    summary = json.loads(store.read(evaluation))
    row = store.catalog().get(evaluation.version)
    costs = {} if row is None else dict(row.facts)
    result = {"evaluation": made["evaluation"], "samples": made["samples"], **summary, "costs": costs}
    path = out / "skills.json"
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    session.emit(result, [*skill_lines(result), f"wrote {path}"])


def skill_lines(result: dict[str, Any]) -> list[str]:
    """The figures of an evaluation of skills, for people: shares with intervals."""
    rows: list[tuple[str, ...]] = [("", "range", "tasks", "", "", "")]
    for range_, found in result["routing"].items():
        chosen, parsed = _share(found["operation"]), _share(found["operands"])
        rows.append(("routing", range_, f"{found['n']:,}", f"operation {chosen}", f"operands {parsed}", ""))
    for family in ("standalone", "external-skill"):
        for interface, ranges in result["families"][family].items():
            for range_, found in ranges.items():
                for rule in ("learned", "declared"):
                    whole, stop = _share(found[rule]["whole_output"]), _share(found[rule]["stop"])
                    name, stopped = f"{family} {interface}", f"{rule} stop {stop}"
                    nll = f"nll {found['nll']['value']:.4f}" if rule == "learned" else ""
                    rows.append((name, range_, f"{found['n']:,}", f"whole output {whole}", stopped, nll))
    for interface, ranges in result["families"]["intervention"].items():
        for range_, found in ranges.items():
            for stratum in ("differs", "equal"):
                if found[stratum]["n"]:
                    follows, stays = (_share(found[stratum][name]) for name in ("follows", "stays"))
                    name, count = f"intervention {interface}, {stratum}", f"{found[stratum]['n']:,}"
                    rows.append((name, range_, count, f"follows {follows}", f"stays {stays}", ""))
    return columns(rows)


def _share(figure: dict[str, float]) -> str:
    return f"{figure['value']:.4f} [{figure['low']:.4f}, {figure['high']:.4f}]"
