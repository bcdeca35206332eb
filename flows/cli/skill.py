"""Commands on skills: build them, run one, ask in words, look inside."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.formatting import columns, counted

if TYPE_CHECKING:
    from tasks.skills import Execution, Program

app = App(name="skill", help="Skills: programs of a bounded machine, and the core that writes their results.")


@app.command
def build(*, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Publish the five arithmetic skills, and train the controller and the core that use them."""
    from flows.params import load_params

    chosen = load_params(params, set_ or ())
    with orchestration(session, session.settings) as settings:
        from flows.build_skills import build_skills

        made = build_skills(chosen, settings)
    refs = [tuple(ref.rsplit("@", 1)) for ref in (*made["skills"], *made["trained"])]
    session.emit(made, columns(refs))


@app.command
def run(skill: str, /, *phrase: str, session: Injected) -> None:
    """Run a skill of the store on the numbers of a phrase, and print what it did.

    Parameters
    ----------
    skill
        Its name, e.g. divide.
    phrase
        As many numbers as the skill takes, in digits or words, and what stands between them, e.g. "minus
        forty-two divided by 5".
    """
    from flows.errors import UsageError
    from tasks.skills import execute, open_program

    if not phrase:
        raise UsageError('which numbers? For example: cellar skill run divide "minus forty-two divided by 5"')
    ref, program = open_program(session.open_store(), skill)
    operands = _operands(" ".join(phrase), program.arity)
    done = execute(program, operands, traced=True)
    record = {"skill": str(ref), "operands": operands, **_record(done)}
    lines = [f"skill     {ref}", f"operands  {' '.join(map(str, operands))}", *_trace(done)]
    if done.value is not None:
        lines.append(f"result    {done.value}")
    session.emit(record, lines)
    _raise_trap(ref.name, done)


@app.command
def publish(name: str, program: Path, /, *, session: Injected) -> None:
    """Publish a program of your own as skill/NAME.

    Parameters
    ----------
    name
        Of the skill, e.g. gcd.
    program
        A JSON file with format, arity, division, step_limit and code; docs/methods.md describes them.
    """
    from flows.errors import UsageError
    from store.paths import existing_file
    from tasks.skills import parse_program, publish_program

    try:
        text = existing_file(program, UsageError, remedy="give a JSON file").read_bytes()
    except OSError as error:
        raise UsageError(f"{program} cannot be read ({error.strerror}); give a JSON file") from error
    parsed = parse_program(text)
    ref = publish_program(session.open_or_create_store(by="skill publish"), name, parsed)
    session.emit(_program(ref, parsed), [f"skill      {ref}", *_about(parsed)])


@app.command
def ask(*phrase: str, params: ParamsFile = None, set_: Set = None, session: Injected) -> None:
    """Ask in words: the controller chooses a skill, the machine runs it, the core writes what it returned.

    Parameters
    ----------
    phrase
        A computation of two whole numbers, e.g. "what is minus forty-two divided by 5?"
    """
    from flows.errors import UsageError
    from flows.params import load_params
    from tasks.skills import Interface, answer, find_skill_set, open_pipeline, open_skill_core, read_prompts

    if not phrase:
        raise UsageError('what is the question? For example: cellar skill ask "what is 6 times seven?"')
    chosen = load_params(params, set_ or ()).skills
    store = session.open_store()
    skills = find_skill_set(store, chosen)
    text = " ".join(phrase)
    [routed] = open_pipeline(store, skills).run([text], traced=True)
    core, renderer = open_skill_core(store, chosen, skills)
    record: dict[str, Any] = {
        "phrase": text,
        "operation": routed.operation.value,
        "probabilities": {operation.value: chance for operation, chance in routed.probabilities.items()},
        "skill": str(skills.programs[routed.operation]),
        "operands": [routed.operands.first, routed.operands.second],
        **_record(routed.execution),
    }
    lines = [
        f"skill     {skills.programs[routed.operation]}, chosen with probability "
        f"{routed.probabilities[routed.operation]:.4f}",
        f"operands  {routed.operands.first} {routed.operands.second}",
        *_trace(routed.execution),
    ]
    if routed.execution.value is not None:
        result = renderer.answer(routed.execution.value)
        read = read_prompts(core, [renderer.prompt(text)])
        [found] = answer(core, renderer, read, Interface.POSITIONAL, [result], [result])
        record["written"] = renderer.text(found.written[: found.length])
        lines += [f"result    {routed.execution.value}", f"written   {record['written']}"]
    session.emit(record, lines)
    _raise_trap(f"skill/{routed.operation.value}", routed.execution)


@app.command
def show(skill: str | None = None, /, *, session: Injected) -> None:
    """List the skills of the store, or print the program of one.

    Parameters
    ----------
    skill
        Its name, e.g. divide; otherwise all of them.
    """
    from tasks.skills import load_program, open_program

    store = session.open_store()
    if skill is not None:
        ref, program = open_program(store, skill)
        session.emit(
            _program(ref, program),
            [f"skill      {ref}", *_about(program), *_code(program)],
        )
        return
    rows = store.catalog().rows("skill")
    newest = {row.name: row for row in rows}
    listed = {str(row.ref): load_program(store.read(row)) for _, row in sorted(newest.items())}
    session.emit(
        [_program(ref, program) for ref, program in listed.items()],
        columns([(ref.rpartition("@")[0], *_in_short(program)) for ref, program in listed.items()])
        or ["no skill yet; `cellar skill build` makes the arithmetic ones"],
    )


def _operands(phrase: str, arity: int) -> list[int]:
    """The numbers of a phrase; of two, a word between them may say that the second comes first."""
    from tasks.skills import parse_numbers, parse_operands

    if arity != 2:
        return parse_numbers(phrase, arity)
    found = parse_operands(phrase)
    return [found.first, found.second]


def _record(done: "Execution") -> dict[str, Any]:
    trace = [
        {"number": step.number, "instruction": str(step.instruction), "stack": list(step.stack)}
        for step in done.trace
    ]
    trap = None if done.trap is None else done.trap.value
    return {
        "value": done.value,
        "trap": trap,
        "trapped_at": done.trapped_at,
        "steps": done.steps,
        "trace": trace,
    }


def _trace(done: "Execution") -> Iterator[str]:
    width = max((len(str(step.instruction)) for step in done.trace), default=0)
    for step in done.trace:
        stack = " ".join(str(number) for number in step.stack)
        yield f"{step.number:>8}  {step.instruction!s:<{width}}  {stack}".rstrip()


def _program(ref: object, program: "Program") -> dict[str, Any]:
    return {"skill": str(ref), "program": json.loads(program.to_bytes())}


def _in_short(program: "Program") -> tuple[str, str, str]:
    counts = counted(len(program.code), "instruction"), counted(program.arity, "argument")
    return (*counts, program.division.value)


def _about(program: "Program") -> list[str]:
    return [
        f"arguments  {program.arity}",
        f"division   {program.division.value}",
        f"steps      {program.step_limit:,} at most",
    ]


def _code(program: "Program") -> Iterator[str]:
    for number, instruction in enumerate(program.code):
        yield f"{number:>8}  {instruction}"


def _raise_trap(name: str, done: "Execution") -> None:
    from tasks.errors import SkillTrapped

    if done.trap is not None:
        where = "before its first instruction" if not done.steps else f"at instruction {done.trapped_at}"
        raise SkillTrapped(f"{name} trapped {where}: {done.trap.value}; give other numbers")
