"""The command that checks a store, in one go or piece by piece, and repairs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from flows.cli.session import Session
from flows.cli.store import Flag, Injected
from flows.formatting import counted
from flows.kept_cursor import KeptCursor

if TYPE_CHECKING:
    from store.backend import Backend
    from store.verify import Finding, VerifyReport

_SHOWN = 10
"""Elements and snapshots of a finding that are listed; --json has all."""


def verify(
    full: Annotated[bool, Flag] = False,
    *,
    sample: Annotated[float, Parameter(validator=Number(gt=0, lte=1))] | None = None,
    seed: int | None = None,
    max_seconds: Annotated[float, Parameter(validator=Number(gt=0))] | None = None,
    resume: Annotated[bool, Flag] = False,
    repair: Annotated[bool, Flag] = False,
    source: Annotated[str | None, Parameter(name="--from")] = None,
    session: Injected,
) -> None:
    """Check that everything the log names is there and intact; exit code 5 where it is not.

    Of one snapshot alone `cellar snapshot verify` checks every byte. Without options the structure and the
    sizes of packs are checked. A pass over the bytes of packs may be long: with --max-seconds it stops,
    Ctrl-C stops it too, and --resume continues it.

    Parameters
    ----------
    full
        Also read every pack and compare its bytes with its digest.
    sample
        Also read this share of the packs (0.1 is a tenth).
    seed
        Which packs are in the sample; the same seed (0 without this option) chooses the same ones.
    max_seconds
        Stop reading packs after this time.
    resume
        Go on where the last pass over this store stopped; with --full or --sample, start one if none did.
    repair
        Write again what can be found or made again, each byte proven by a digest; delete nothing.
    source
        Another store or an export from which packs and other files may be copied, by digest.
    """
    from flows.errors import UsageError
    from store.backend import open_backend

    if repair and (sample or max_seconds or resume):
        raise UsageError(
            "a repair looks at everything at once; leave out --sample, --max-seconds and --resume"
        )
    if source is not None and not repair:
        raise UsageError("--from says where a repair may copy from; add --repair")
    if full and sample is not None:
        raise UsageError("--full reads every pack and --sample a share of them; leave out one of the two")
    if seed is not None and sample is None:
        raise UsageError("--seed chooses the packs of a sample; add --sample or leave it out")
    if max_seconds is not None and not (full or sample or resume):
        raise UsageError("--max-seconds bounds the reading of packs; add --full, --sample or --resume")
    backend = open_backend(session.settings.store)
    if repair:
        _repair(session, backend, source, full=full)
    else:
        _check(session, backend, _Pass(full, sample or 0.0, seed or 0, max_seconds, resume))


@dataclass(frozen=True)
class _Pass:
    """What is asked of a pass over the bytes of packs."""

    full: bool
    sample: float
    seed: int
    max_seconds: float | None
    resume: bool


def _check(session: Session, backend: "Backend", wanted: _Pass) -> None:
    from store.errors import InputError, IntegrityError
    from store.verify import verify as check

    with _kept_cursor(session, backend) as kept, session.progress("verify", "objects") as progress:
        start = kept.load() if wanted.resume else None
        if wanted.resume and start is None and kept.known and not (wanted.full or wanted.sample):
            raise InputError(
                f"no pass over the packs of {backend.url} was left unfinished, so nothing can be resumed; "
                "add --full or --sample to start one"
            )
        report = check(
            backend,
            full=wanted.full,
            sample=wanted.sample,
            seed=wanted.seed,
            resume=start,
            max_seconds=wanted.max_seconds,
            keep=kept.keep,
            progress=progress,
        )
        kept.finish(report)
    _notify(backend, report.findings)
    session.emit(
        {**report.to_dict(), "url": backend.url},
        [*_summary(backend.url, report), *_damage(report.findings)],
    )
    if not report.ok:
        found = counted(len(report.findings), "finding")
        raise IntegrityError(f"{found} in {backend.url}; {_way_out(backend, report.findings)}")


def _repair(session: Session, backend: "Backend", source: str | None, *, full: bool) -> None:
    from store import Store
    from store.errors import IntegrityError
    from store.repair import repair

    copies = Store.open(source).backend if source is not None else None
    with session.progress("repair", "objects") as progress:
        report = repair(
            backend, source=copies, full=full, run=session.record("verify --repair"), progress=progress
        )
    _notify(backend, report.after.findings)
    lines = [f"repaired {done.key}: {done.how}" for done in report.repaired] or ["nothing was repaired"]
    lines += ["nothing is left to repair"] if report.ok else list(report.notes)
    session.emit(
        report.to_dict(),
        [*lines, _figures(backend.url, report.after), *_damage(report.after.findings)],
    )
    if not report.ok:
        advice = "restore these objects from a copy of the store, or run the builds that wrote them"
        if _only_names(report.after.findings) and not report.notes:
            advice = "a repair makes no names again: do what is said of each"
        left = counted(len(report.after.findings) + len(report.notes), "finding")
        raise IntegrityError(f"{left} in {backend.url} could not be repaired; {advice}")


def _notify(backend: "Backend", findings: "tuple[Finding, ...]") -> None:
    if findings:  # otherwise Prefect need not be loaded
        from flows.notices.degraded import tell_of_findings

        tell_of_findings(backend.url, findings)


def _way_out(backend: "Backend", findings: "tuple[Finding, ...]") -> str:
    """What helps: a repair neither changes an export nor makes a name again, so do not send people there."""
    if _is_export(backend):
        return "an export is not repaired: export or copy the snapshot again from a store that has it"
    if _only_names(findings):
        return "a repair makes no names again: do what is said of each"
    return "try `cellar verify --repair`, with `--from` another store or export that has them"


def _is_export(backend: "Backend") -> bool:
    from store.backend.read_only import Unwritable
    from store.errors import CellarError
    from store.format import EXPORT, FORMAT_KEY, unseal

    if isinstance(backend, Unwritable):
        return True
    try:
        return EXPORT in unseal(backend.read(FORMAT_KEY), FORMAT_KEY, {"features": list})["features"]
    except CellarError:  # it is damaged, too
        return False


def _only_names(findings: "tuple[Finding, ...]") -> bool:
    from store.format import is_name

    return all(is_name(finding.key) for finding in findings)


@contextmanager
def _kept_cursor(session: Session, backend: "Backend") -> Iterator[KeptCursor]:
    """The kept place for a store; however the body ends, the place is written down."""
    kept = KeptCursor.of(session.settings.work_dir, backend)
    try:
        yield kept
    except KeyboardInterrupt:
        if kept.write():
            raise KeyboardInterrupt("`cellar verify --resume` continues the pass over its packs") from None
        raise
    except BaseException:
        kept.write()
        raise


def _figures(url: str, report: "VerifyReport") -> str:
    names = ("objects", "commits", "elements", "snapshots")
    return f"{url}: {_counted({name: getattr(report, name) for name in names})}"


def _summary(url: str, report: "VerifyReport") -> list[str]:
    from flows.formatting import size

    lines = [_figures(url, report)]
    if not report.sample:
        lines.append(
            "checked structure and sizes; --full reads every byte, --sample 0.1 a tenth of the packs"
        )
    else:
        which = "all packs" if report.full else f"a sample of {report.sample:g} of the packs"
        done = report.packs_before + report.packs_read
        lines.append(
            f"read {report.packs_read:,} packs, {size(report.bytes_read)} in all; {done:,} of "
            f"{report.packs_chosen:,} so far"
        )
        if report.cursor is None:
            lines.append(f"the pass over {which} is complete")
        else:
            after = report.cursor.after[:12]
            lines.append(
                f"the pass over {which} stopped after pack {after}; `cellar verify --resume` continues it"
            )
    if report.leftovers:
        lines.append(f"left over, which is no damage: {_counted(report.leftovers)}")
    return lines


def _damage(findings: "tuple[Finding, ...]") -> list[str]:
    lines = []
    for finding in findings:
        named = finding.problem.startswith(finding.key)
        lines.append(finding.problem if named else f"{finding.key}: {finding.problem}")
        for noun, touched in (
            ("element", finding.elements),
            ("snapshot", finding.snapshots),
            ("name", finding.names),
        ):
            lines += [f"  {noun} {what}" for what in touched[:_SHOWN]]
            if len(touched) > _SHOWN:
                lines.append(f"  and {len(touched) - _SHOWN:,} more {noun}s (--json lists all)")
    return lines


def _counted(figures: Any) -> str:
    return ", ".join(f"{number:,} {noun}" for noun, number in figures.items())
