"""Commands on evaluations: attach a snapshot's evidence to the core and measure, show what was measured."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from flows.cli.launch import Injected, ParamsFile, Set
from flows.cli.package import package as write_package
from flows.cli.package import reproduce
from flows.cli.subjects import FIGURES, SUBJECTS, Asked, SubjectName, refuse_stray_options

app = App(name="eval", help="Attachment evaluations against a pinned snapshot.")
app.command(write_package, name="package")
RESULTS = Path("results")

_FILES = [kind.file for kind in FIGURES]
Out = Annotated[
    Path,
    Parameter(
        help=f"Folder for {_FILES[0]}, metrics.json, report.html and plots/, or for "
        f"{', '.join(_FILES[1:-1])} or {_FILES[-1]}."
    ),
]
Shown = Annotated[
    Path | None,
    Parameter(
        help=f"A file that `cellar eval run` wrote, or a folder: of {', '.join(_FILES)} the first that lies "
        "there; otherwise results, or build/demo."
    ),
]


@app.command
def run(
    subject: SubjectName = "attachment",
    /,
    *,
    snapshot: str | None = None,
    core: str | None = None,
    data: Path | None = None,
    package: Path | None = None,
    out: Out = RESULTS,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Evaluate, and write what was measured into a folder.

    Parameters
    ----------
    subject
        attachment: the core against the pinned snapshot's memories, with summary, plots and report;
        reading: the same tasks without any alignment, where the core reads in what their text finds;
        replacement: the same tasks before and after another version of one memory stands in the snapshot;
        audit: attachment, and then what its documents share with the text that training saw, with the
        scores of the tasks that share nothing; addressing: how well the snapshot's index finds its
        memories, beside a dense and a lexical baseline; questions: how well paragraphs, made memories with
        its codec, are found by questions on them; skills: the arithmetic skills, built if they are not
        there; rate: what documents of the pinned corpus lose in cells of several widths and number formats.
    snapshot
        Evaluate this one, with what the store says about it, instead of what the pin files name: its id, at
        least eight digits of it, a tag or a head.
    core
        Against this core of the store, e.g. core/assembly; otherwise the newest one of the same parameters
        that reads the snapshot's codec, or a new one. Only with --snapshot.
    data
        A file of paragraphs and questions in the SQuAD layout, for questions.
    package
        Score what `cellar eval package` wrote instead, with nothing but that, and compare every loss with the
        packaged one; exit code 8 where one differs by more than processors do.
    """
    from flows.errors import UsageError
    from flows.params import load_params

    if package is not None:
        if subject != "attachment" or snapshot or core or data or params or set_:
            raise UsageError("a package says itself what is evaluated; give --package alone, or with --out")
        reproduce(package, out, session)
        return
    asked = Asked(load_params(params, set_ or ()), session, out, snapshot=snapshot, core=core, data=data)
    refuse_stray_options(subject, asked)
    SUBJECTS[subject].evaluate(asked)


@app.command
def show(figures: Shown = None, /, *, session: Injected) -> None:
    """Show the figures of an evaluation."""
    from flows.errors import UsageError

    path, others = _find(figures)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        [kind] = [kind for kind in FIGURES if kind.member in found]
        lines = kind.lines(found)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); give another file") from error
    except (ValueError, LookupError, ArithmeticError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{path} is no summary of an evaluation; give a file that `cellar eval run` wrote"
        ) from error
    if others:
        lines = [*lines, f"{path.parent} holds {', '.join(others)} too; give the path of one to see it"]
    session.emit(found, lines)


def _find(given: Path | None) -> tuple[Path, list[str]]:
    """A file of figures, and the names of others beside it where a folder was searched."""
    from flows.errors import UsageError
    from store.paths import existing_file

    if given is not None:
        existing_file(
            given, UsageError, remedy="give the figures of an evaluation, or their folder", or_folder=True
        )
    places = [given] if given is not None else [RESULTS, Path("build/demo")]
    for place in places:
        if place.is_file():
            return place, []
        if here := [name for name in _FILES if (place / name).is_file()]:
            return place / here[0], here[1:]
    where = " or ".join(str(place) for place in places)
    raise UsageError(f"no figures of an evaluation in {where}; run `cellar demo` or `cellar eval run` first")
