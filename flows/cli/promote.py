"""The command that moves a head to a snapshot whose evaluation meets what is required."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli.launch import Flag, Injected, ParamsFile, Set, orchestration
from flows.cli.session import Session
from flows.formatting import columns, count

if TYPE_CHECKING:
    from flows.params import Params
    from flows.promoting.promotion import Evaluate, Promotion
    from store import Store
    from tasks.evaluation.params import EvaluationParams

Many = Parameter(negative="", consume_multiple=False)


def promote(
    snapshot: str,
    /,
    *,
    to: str,
    require: Annotated[list[str] | None, Many] = None,
    require_signature: Annotated[list[Path] | None, Many] = None,
    why: str = "",
    core: str | None = None,
    evaluate: Annotated[bool, Parameter(negative="--no-evaluate")] = True,
    dry_run: Annotated[bool, Flag] = False,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Move a head to a snapshot if its evaluation meets every requirement; exit code 8 where it does not.

    The head remembers who moved it, when, why, and the evaluation; `cellar head log` shows that and `cellar
    head rollback` takes it back.

    Parameters
    ----------
    snapshot
        Its id, at least eight digits of it, a tag or a head.
    to
        The head to move, or to make.
    require
        FIGURE OPERATOR BOUND, e.g. 'nll.retrieved<2.0' or 'conditions.retrieved.nll.high<=prod+0.05', where
        the name of the head means the figure of the snapshot that it points to; may be given several times.
    require_signature
        A public key whose holder must have signed the snapshot; may be given several times.
    why
        A line for the head's log; otherwise the requirements with their figures.
    core
        Judge by an evaluation against this core, e.g. core/assembly; otherwise by the newest evaluation.
    evaluate
        Evaluate what is not evaluated yet (--no-evaluate refuses it).
    dry_run
        Judge, and move nothing.
    """
    from flows.errors import UsageError
    from flows.params import load_params
    from flows.promoting.promotion import promote as run
    from flows.promoting.requirements import parse_requirement
    from flows.provenance.inputs import named_core
    from store.errors import ThresholdNotMet
    from store.format import check_label
    from store.positions import Note

    check_label(to, "head")
    Note(why=why).check()
    requirements = [parse_requirement(text, to) for text in require or ()]
    if not requirements:
        raise UsageError(
            "what must hold? Give e.g. --require 'nll.retrieved<2.0'; `cellar head move` judges nothing"
        )
    chosen = load_params(params, set_ or ())
    asked = params is not None or any(map(_is_setting, set_ or ()))
    store = session.open_store(by="promote")
    opened = store.snapshot(snapshot)
    exact = None if core is None else str(named_core(store, opened, core))
    _check_signatures(store, opened.id, require_signature or ())
    result = run(
        store,
        opened.id,
        to=to,
        requirements=requirements,
        evaluate=_evaluation(session, chosen) if evaluate else _refuse,
        name=chosen.evaluation.name,
        core=exact,
        settings=chosen.evaluation if asked else None,
        why=why,
        dry_run=dry_run,
        warn=session.warn,
    )
    session.emit(result.to_dict(), _lines(result, dry_run=dry_run))
    if not result.holds:
        failed = sum(not verdict.holds for verdict in result.verdicts)
        raise ThresholdNotMet(
            f"{failed} of {len(result.verdicts)} requirements did not hold; head {to} still points to "
            f"{result.before[:12] if result.before else 'nothing'}"
        )


def _is_setting(override: str) -> bool:
    """Whether an override says how to evaluate; the name alone says which evaluations count."""
    name = override.partition("=")[0].strip()
    return name == "evaluation" or (name.startswith("evaluation.") and name != "evaluation.name")


def _check_signatures(store: "Store", snapshot: str, keys: "list[Path] | tuple[()]") -> None:
    from store.keys import read_public_key
    from store.signature import check_signed_by, read_signatures

    signatures = list(read_signatures(store.backend, snapshot)) if keys else []
    for key in keys:
        check_signed_by(signatures, read_public_key(key), snapshot)


def _evaluation(session: Session, params: "Params") -> "Evaluate":
    """Evaluate by the flow, under the given parameters or others."""
    from flows.provenance.evidence import check_indexed

    def evaluate(snapshot: str, settings: "EvaluationParams | None", core: str | None) -> str:
        opened = session.open_store().snapshot(snapshot)
        with orchestration(session, session.settings, check=lambda _: check_indexed(opened)) as place:
            from flows.evaluate_snapshot import evaluate_snapshot

            chosen = params if settings is None else params.model_copy(update={"evaluation": settings})
            made: str = evaluate_snapshot(chosen, place, snapshot, core)["evaluation"]
        return made

    return evaluate


def _refuse(snapshot: str, settings: "EvaluationParams | None", core: str | None) -> str:
    from flows.promoting.promotion import NotEvaluated

    against = f" against {core}" if core else ""
    by, also = ("", "") if settings is None else (" by these settings", " with them")
    raise NotEvaluated(
        f"snapshot {snapshot[:12]} has no evaluation{against}{by} to judge it by; run `cellar eval run "
        f"--snapshot {snapshot[:12]}`{also}, or leave out --no-evaluate"
    )


def _lines(result: "Promotion", *, dry_run: bool) -> Iterator[str]:
    yield f"snapshot   {result.snapshot}"
    used = result.evaluation
    yield f"evaluation {used.row.ref}, {count(used.figures.get('tasks'))} tasks"
    yield f"settings   {', '.join(f'{name} {value}' for name, value in used.settings)}"
    yield f"core       {used.core}"
    if result.of_head is not None:
        yield f"{result.head} was judged by {result.of_head.row.ref}"
        if result.of_head.core != result.evaluation.core:
            yield f"against another core, since it holds another codec: {result.of_head.core}"
    yield ""
    rows = [
        (
            verdict.requirement.text,
            f"{verdict.value:.6g}",
            "nothing to compare with" if verdict.bound is None else f"{verdict.bound:.6g}",
            "holds" if verdict.holds else "DOES NOT HOLD",
        )
        for verdict in result.verdicts
    ]
    yield from columns(rows, ("requirement", "figure", "bound", "verdict"))
    yield ""
    before = result.before or "nothing"
    if result.moved:
        yield f"head {result.head}: {result.before or 'new'} -> {result.snapshot}"
    elif result.holds and result.before == result.snapshot:
        yield f"head {result.head} is there already"
    elif result.holds and dry_run:
        yield f"head {result.head} would move from {before} to {result.snapshot}"
    else:
        yield f"head {result.head} stays at {before}"
