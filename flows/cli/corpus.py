"""Commands on corpora: read documents into the store, learn a tokenizer, show what became of a source."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from flows.cli.session import Session
from flows.formatting import columns, counted

if TYPE_CHECKING:
    from tasks.corpus import CorpusResult

app = App(name="corpus", help="Documents read from where they lie, in shards.")
Injected = Annotated[Session, Parameter(parse=False)]
Flag = Parameter(negative="")
Set = Annotated[list[str] | None, Parameter(name="--set", negative="", consume_multiple=False)]

_FEW = 10


@app.command
def build(
    *,
    folder: Path | None = None,
    jsonl: Path | None = None,
    parquet: Path | None = None,
    text: Path | None = None,
    split_on: str | None = None,
    name: str | None = None,
    params: Path | None = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Read documents into the store; without a source, the documentation that is installed here.

    Parameters
    ----------
    folder
        Read the text files below this folder (corpus.pattern, **/*.txt).
    jsonl
        Read JSON lines with the fields id and text: a file, or a folder of .jsonl files.
    parquet
        Read Parquet tables with the columns id and text: a file, or a folder of .parquet files.
    text
        Read one long text.
    split_on
        With --text: a line that matches this regular expression starts a new document.
    name
        Name of the corpus in the store.
    params
        Parameter file; otherwise params.yaml where there is one.
    set_
        Override a parameter, e.g. --set corpus.shards=32; may be repeated.
    """
    from dataclasses import asdict

    from flows.params import load_params
    from flows.pins import Pin, write_pin
    from tasks.corpus import ingest, open_source

    overrides = [*(set_ or ()), *_source(folder=folder, jsonl=jsonl, parquet=parquet, text=text)]
    if split_on is not None:
        overrides.append(f"corpus.split_on={split_on}")
    if name is not None:
        overrides.append(f"corpus.name={name}")
    chosen = load_params(params, overrides).corpus
    open_source(chosen)  # what is not there is said before a store is made
    store = session.open_or_create_store(by="corpus build")
    with session.progress(f"corpus {chosen.name}", "documents") as progress:
        result = ingest(store, chosen, progress)
    figures = {key: value for key, value in asdict(result.report).items() if key != "listed"}
    refs = tuple(str(ref) for ref in result.shards)
    pin = write_pin(session.settings.pins, Pin(stage="corpus", refs=refs, figures=figures))
    session.emit(_record(chosen.name, result), [*_summary(chosen.name, result), f"wrote {pin}"])


def _source(**paths: Path | None) -> list[str]:
    """The overrides that one of the source options stands for; paths are quoted as JSON."""
    import json

    from flows.errors import UsageError

    given = {reader: path for reader, path in paths.items() if path is not None}
    if len(given) > 1:
        raise UsageError(f"give one source, not {' and '.join('--' + reader for reader in given)}")
    return [
        override
        for reader, path in given.items()
        for override in (f"corpus.reader={reader}", f"corpus.path={json.dumps(str(path))}")
    ]


@app.command
def tokenizer(*, params: Path | None = None, set_: Set = None, session: Injected) -> None:
    """Learn a byte-level tokenizer on the even shards of the corpus that was built last.

    Parameters
    ----------
    params
        Parameter file; otherwise params.yaml where there is one.
    set_
        Override a parameter, e.g. --set tokenizer.vocab_size=8192; may be repeated.
    """
    from flows.params import load_params
    from flows.pins import Pin, read_pin, write_pin
    from tasks.corpus import load_tokenizer, train_tokenizer

    chosen = load_params(params, set_ or ()).tokenizer
    shards = read_pin(session.settings.pins, "corpus").references("corpus")
    store = session.open_store(by="corpus tokenizer")
    ref = train_tokenizer(store, chosen, corpus=shards)
    figures = {"vocab_size": load_tokenizer(store, ref).vocab_size}
    pin = write_pin(session.settings.pins, Pin(stage="tokenizer", refs=(str(ref),), figures=figures))
    lines = [f"{ref.name} has {figures['vocab_size']:,} tokens ({ref.version[:12]})", f"wrote {pin}"]
    session.emit({"tokenizer": str(ref), **figures}, lines)


@app.command
def show(name: str | None = None, /, *, skipped: Annotated[bool, Flag] = False, session: Injected) -> None:
    """Show what became of the documents of a corpus, or of all corpora.

    Parameters
    ----------
    name
        Which corpus; all of them when left out.
    skipped
        List every skipped document, not only the first ones.
    """
    from store.errors import ElementNotFound
    from tasks.corpus.step import result_of

    store = session.open_store()
    rows = {row.name: row for row in store.catalog().rows("corpus") if row.name.endswith("/report")}
    reports = {full.split("/")[1]: row for full, row in rows.items()}
    if name is not None and name not in reports:
        known = f"it has {', '.join(sorted(reports))}" if reports else "run `cellar corpus build` first"
        raise ElementNotFound(f"{store.url} has no corpus {name}; {known}")
    shown = {name: reports[name]} if name is not None else reports
    results = {corpus: result_of(row.ref, store.read(row), reused=True) for corpus, row in shown.items()}
    lines = [
        line
        for corpus, result in results.items()
        for line in (*_summary(corpus, result), *_skipped(result, everything=skipped))
    ]
    session.emit([_record(corpus, result) for corpus, result in results.items()], lines or ["no corpus yet"])


def _record(name: str, result: "CorpusResult") -> dict[str, Any]:
    from dataclasses import asdict

    shards = [str(ref) for ref in result.shards]
    return {"corpus": name, **asdict(result.report), "shards": shards, "reused": result.reused}


def _summary(name: str, result: "CorpusResult") -> Iterator[str]:
    report = result.report
    yield (
        f"corpus {name}: {counted(report.documents, 'document')}, {report.characters:,} characters in "
        f"{len(result.shards)} shards ({counted(report.worker_documents, 'document')} for memory workers)"
    )
    if report.duplicates or report.skipped:
        yield f"left out: {counted(report.duplicates, 'duplicate')}, {report.skipped:,} skipped"
        yield from (f"  {count:,} {reason}" for reason, count in report.reasons.items())


def _skipped(result: "CorpusResult", *, everything: bool) -> list[str]:
    listed = result.report.listed
    shown = listed if everything else listed[:_FEW]
    lines = columns([("  " + entry["name"], entry["reason"]) for entry in shown])
    if len(shown) < result.report.skipped:
        rest = result.report.skipped - len(shown)
        lines.append(f"  ... {rest:,} more" + ("" if everything else "; --skipped lists them"))
    return lines
