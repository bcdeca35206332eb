"""The command that examines a storage before a store is trusted to it."""

from flows.cli.store import Injected
from flows.formatting import columns


def doctor(*, session: Injected) -> None:
    """Try out everything that a store needs of the bucket or folder; exit code 3 where it is not fit.

    Needs no store to be there, writes below doctor/ only and removes what it wrote. Who may not write there
    learns nothing about its fitness. It also tells which roles (reader, worker, committer, collector) the
    credentials fit.
    """
    from store.backend import open_backend
    from store.doctor import diagnose

    backend = open_backend(session.settings.store)
    with session.progress("doctor", "checks") as progress:
        report = diagnose(backend, progress=progress)
    figures = [(check.status, check.name, check.sentence) for check in report.checks]
    warnings = sum(check.status == "warn" for check in report.checks)
    verdict = f"{report.url} {report.verdict}"
    if report.tested or report.failed:
        verdict += f"; {warnings} warnings"
    if not report.failed:
        verdict += f"; this identity fits the roles {', '.join(report.roles) or 'of nobody'}"
    session.emit(report.to_dict(), [*columns(figures), verdict])
    report.refuse_if_unfit()
