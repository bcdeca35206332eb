"""The command that tries out whether messages about runs arrive."""

from cyclopts import App

from flows.cli.store import Injected

app = App(name="notify", help="Messages about failed and degraded runs (CELLAR_NOTIFY_URL).")


@app.command
def test(*, session: Injected) -> None:
    """Post a test message to CELLAR_NOTIFY_URL, and say whether the receiver took it."""
    from flows.errors import SettingsError
    from flows.notices.notify import deliver, load_notifications, message

    limits = load_notifications()
    if limits.url is None:
        raise SettingsError("CELLAR_NOTIFY_URL is not set; give the address that messages are posted to")
    content = message(
        "test",
        flow="notify",
        run=None,
        state="Completed",
        reason="a test message, nothing has happened",
        store=session.settings.store,
        snapshot=None,
        figures={"rejected_share": limits.rejected_share, "recall": limits.recall},
    )
    deliver(content, limits.url)
    session.emit(content, ["the receiver at CELLAR_NOTIFY_URL took a test message"])
