"""Telling somebody that a run failed or came out worse than it should: one JSON message to a configured URL.

The URL is a secret, since whoever knows it can post. So it is no field of `Settings`, which travel to workers
and into records, but is read from the environment where a message is sent, and no log or error shows it.
"""

import http.client
import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from flows.errors import NotDelivered, SettingsError
from flows.origin import origin
from flows.runs.exits import exit_code, reason_of_exit
from flows.runs.labels import store_of

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun, State

P = ParamSpec("P")
R = TypeVar("R")

_LOG = logging.getLogger(__name__)

_VARIABLE = "CELLAR_NOTIFY_URL"
_ANSWER_S = 5.0
_PAUSES_S = (0.5, 2.0)
"""Before the second and the third attempt."""
_LIMIT_S = 12.0
"""What a message may take, whatever the receiver does."""
_AGAIN = {408, 425, 429}
_RAISED = "Flow run encountered an exception: "
_REASONS = 20
"""That one message lists."""

stopping = threading.Event()
"""Set while this process ends its runs because it was asked to stop: who asked knows about it."""


class Notifications(BaseSettings):
    """Where messages go and what counts as degraded, from variables `CELLAR_NOTIFY_` + name in capitals."""

    model_config = SettingsConfigDict(env_prefix="CELLAR_NOTIFY_", frozen=True, extra="forbid")

    url: SecretStr | None = None
    """An `http://` or `https://` address that takes JSON by POST, as the webhooks of chat services do."""
    rejected_share: float = Field(default=0.05, ge=0, le=1)
    """A build that rejects a larger share of its documents is degraded."""
    recall: float = Field(default=0.95, ge=0, le=1)
    """So is one with a lower token recall, and an evaluation with a lower recall at 1."""

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or not value.get_secret_value():
            return None
        address = value.get_secret_value()
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError
        if not address.isascii() or not address.isprintable() or " " in address:
            raise ValueError
        return value


def load_notifications() -> Notifications:
    """Who is to be told of what, from the environment.

    Raises:
        SettingsError: a variable has a value that cannot be used; the URL is not repeated.
    """
    try:
        return Notifications()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if name == "url":
            raise SettingsError(
                f"{_VARIABLE} is no address to post to; give http:// or https:// with a host, without a user"
            ) from None
        what = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise SettingsError(f"CELLAR_NOTIFY_{name.upper()} is {str(first['input'])[:60]!r}: {what}") from None


def failed(
    *,
    flow: str,
    run: str | None,
    state: str,
    reason: str,
    store: str | None = None,
    snapshot: str | None = None,
) -> None:
    """Tell that a run failed or crashed, if anybody wants to know. Never raises."""
    if not stopping.is_set():
        _tell(
            message("failed", flow=flow, run=run, state=state, reason=reason, store=store, snapshot=snapshot)
        )


def degraded(
    reasons: Sequence[str],
    *,
    flow: str,
    run: str | None,
    store: str | None = None,
    snapshot: str | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Tell that a run ended with something to look at, unless there are no reasons. Never raises."""
    if reasons:
        more = len(reasons) - _REASONS
        shown = [*reasons[:_REASONS], *([f"and {more:,} more"] if more > 0 else [])]
        _tell(
            message(
                "degraded",
                flow=flow,
                run=run,
                state="Completed",
                reason="; ".join(shown),
                store=store,
                snapshot=snapshot,
                figures=figures,
            )
        )


def message(
    event: str,
    *,
    flow: str,
    run: str | None,
    state: str,
    reason: str,
    store: str | None,
    snapshot: str | None,
    figures: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What is posted: fields for programs, and `text` for people, as chat services show it."""
    where = origin()
    reason, store = _encodable(reason), store and _encodable(store)
    named = [("run", run), ("snapshot", snapshot), ("store", store), ("on", where["host"])]
    details = ", ".join(f"{what} {value}" for what, value in named if value)
    return {
        "text": _plain(f"cellar: {flow} {event}: {reason} ({details})"),
        "event": event,
        "flow": flow,
        "run": run,
        "state": state,
        "reason": reason,
        "snapshot": snapshot,
        "store": store,
        "figures": dict(figures or {}),
        "host": where["host"],
        "user": where["user"],
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def on_end(flow: "Flow[P, R]", flow_run: "FlowRun", state: "State[Any]") -> None:
    """Hook of flows that failed or crashed; a flow inside another leaves it to that one.

    Who presses Ctrl-C knows about it.
    """
    ended = getattr(state.data, "result", state.data)
    if flow_run.parent_task_run_id is None and not isinstance(ended, KeyboardInterrupt):
        code = exit_code(state.message)
        reason = (state.message or "no reason is known").removeprefix(_RAISED)
        if code is not None:
            with suppress(httpx.HTTPError):  # without an answer the message of the state has to do
                reason = reason_of_exit(flow_run.id, code)
        failed(
            flow=flow.name,
            run=str(flow_run.id),
            state=state.name or "",
            reason=reason,
            store=store_of(flow_run.parameters),
        )


def deliver(content: Mapping[str, Any], url: SecretStr) -> None:
    """Post a message; tried again while the receiver does not answer, or says that it cannot now.

    The work is done in a thread that is waited for so long and no longer: a receiver that sends one byte now
    and then keeps within every limit that a socket knows.

    Raises:
        NotDelivered: the receiver did not take it, or not in time.
    """
    ended: list[Exception | None] = []

    def work() -> None:
        try:
            _post_again(content, url)
        except Exception as error:  # noqa: BLE001 - raised below, where somebody waits for it
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=work, name="notify", daemon=True)
    thread.start()
    thread.join(_LIMIT_S)
    if not ended:
        raise NotDelivered(
            f"the receiver at {_VARIABLE} took longer than {_LIMIT_S:.0f} s; going on without it"
        )
    if ended[0] is not None:
        raise ended[0]


def _post_again(content: Mapping[str, Any], url: SecretStr) -> None:
    for pause in (*_PAUSES_S, None):
        try:
            return _post(content, url)
        except _Passing as error:
            if pause is None:
                raise NotDelivered(str(error)) from None
            time.sleep(pause)
    return None


class _Passing(Exception):
    """Trying again may help."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the message is for the configured receiver alone."""

    def redirect_request(self, *arguments: Any, **options: Any) -> None:
        return None


def _post(content: Mapping[str, Any], url: SecretStr) -> None:
    request = urllib.request.Request(  # noqa: S310 - settings allow http and https only
        url.get_secret_value(),
        data=json.dumps(content, default=str).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "cellar"},
        method="POST",
    )
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=_ANSWER_S):
            return
    except urllib.error.HTTPError as error:
        error.close()
        said = f"the receiver at {_VARIABLE} answered {error.code}"
        if error.code >= 500 or error.code in _AGAIN:
            raise _Passing(said) from None
        hint = ", a redirect, which is not followed" if 300 <= error.code < 400 else ""
        raise NotDelivered(f"{said}{hint}; check that address") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        # Some of these quote the address in their text; their kind says enough.
        cause = getattr(error, "reason", error)
        kind = type(cause if isinstance(cause, BaseException) else error).__name__
        raise _Passing(f"the receiver at {_VARIABLE} could not be reached ({kind})") from None


def _tell(content: Mapping[str, Any]) -> None:
    """Post if anybody wants to know; what goes wrong is one line in the log."""
    try:
        url = load_notifications().url
    except SettingsError as error:
        _LOG.warning("nobody was told: %s", error)
        return
    if url is None:
        return

    try:
        deliver(content, url)
    except Exception as error:  # noqa: BLE001 - a run never ends differently because of its message
        said = error if isinstance(error, NotDelivered) else type(error).__name__
        _LOG.warning("nobody was told that %s %s: %s", content["flow"], content["event"], said)


def _encodable(text: str) -> str:
    """Text in which bytes of file names that are no UTF-8 are spelled out, for receivers that refuse them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(text: str) -> str:
    """Text in which a chat service finds no markup and nobody to call."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
