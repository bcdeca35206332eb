"""Conditional writes end in certainty: ours, theirs, or an error that says it is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from store import conditional
from store.backend import Body
from store.backend.local import LocalBackend
from store.errors import AnswerLost, CommitStateUnknown, Contended, KeyExists, StorageUnavailable, Unreachable


class LossyBackend(LocalBackend):
    """A real folder whose conditional writes and reads answer as `script` says, one word per call.

    `ok` works; `landed` writes and loses the answer; `dropped` loses the request; `busy` refuses; `repeated`
    writes and then answers "exists", as an SDK that repeats a write does; `down` is unreachable.
    """

    def __init__(self, root: Path, *, writes: Iterator[str], reads: Sequence[str] = ()) -> None:
        super().__init__(root)
        self._writes = writes
        self._reads = iter(reads)

    def create(self, key: str, body: Body) -> None:
        match next(self._writes, "ok"):
            case "landed":
                super().create(key, body)
                raise AnswerLost("no answer")
            case "dropped":
                raise AnswerLost("no answer")
            case "busy":
                raise Contended("busy")
            case "down":
                raise Unreachable("down")
            case "repeated":
                super().create(key, body)
                raise KeyExists("exists")
        super().create(key, body)

    def replace(self, key: str, body: Body, *, token: str) -> None:
        match next(self._writes, "ok"):
            case "landed":
                super().replace(key, body, token=token)
                raise AnswerLost("no answer")
            case "dropped":
                raise AnswerLost("no answer")
        super().replace(key, body, token=token)

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if next(self._reads, "ok") == "down":
            raise Unreachable("down")
        return super().read(key, offset=offset, length=length)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "_FIRST_PAUSE_S", 0.0)


@pytest.mark.parametrize(
    "script",
    ["ok", "landed", "dropped", "busy busy", "repeated", "dropped busy landed", "down dropped", "down"],
)
def test_a_write_that_can_land_lands_once(tmp_path: Path, script: str) -> None:
    backend = LossyBackend(tmp_path, writes=iter(script.split()))

    assert conditional.create(backend, "log/1", b"mine") is True
    assert backend.read("log/1") == b"mine"


@pytest.mark.parametrize("script", ["ok", "dropped", "busy", "dropped dropped busy"])
def test_somebody_elses_content_is_never_taken_for_ours(tmp_path: Path, script: str) -> None:
    LocalBackend(tmp_path).create("log/1", b"theirs")
    backend = LossyBackend(tmp_path, writes=iter(script.split()))

    assert conditional.create(backend, "log/1", b"mine") is False
    assert backend.read("log/1") == b"theirs"


def test_a_storage_that_stays_silent_leaves_the_state_unknown(tmp_path: Path) -> None:
    backend = LossyBackend(tmp_path, writes=iter(["dropped"] * 100))

    with pytest.raises(CommitStateUnknown, match="log/1"):
        conditional.create(backend, "log/1", b"mine")


def test_a_storage_that_falls_silent_after_the_write_leaves_the_state_unknown(tmp_path: Path) -> None:
    backend = LossyBackend(tmp_path, writes=iter(["landed"]), reads=["down"])

    with pytest.raises(CommitStateUnknown, match="log/1"):
        conditional.create(backend, "log/1", b"mine")

    assert backend.read("log/1") == b"mine"  # nothing was deleted, so a rerun finds its own write


@pytest.mark.parametrize(("word", "error"), [("busy", StorageUnavailable), ("down", Unreachable)])
def test_a_write_that_was_certainly_not_done_is_reported_as_such(
    tmp_path: Path, word: str, error: type[Exception]
) -> None:
    backend = LossyBackend(tmp_path, writes=iter([word] * 100))

    with pytest.raises(error):
        conditional.create(backend, "log/1", b"mine")


@pytest.mark.parametrize("script", ["ok", "landed", "dropped", "dropped landed"])
def test_a_replacement_lands_once(tmp_path: Path, script: str) -> None:
    LocalBackend(tmp_path).create("head", b"before")
    backend = LossyBackend(tmp_path, writes=iter(script.split()))
    before, token = backend.read_with_token("head")

    assert conditional.replace(backend, "head", b"after", before=before, token=token) is True
    assert backend.read("head") == b"after"


@pytest.mark.parametrize("script", ["ok", "dropped"])
def test_a_replacement_never_overwrites_another_one(tmp_path: Path, script: str) -> None:
    plain = LocalBackend(tmp_path)
    plain.create("head", b"before")
    before, token = plain.read_with_token("head")
    plain.put("head", b"theirs")

    backend = LossyBackend(tmp_path, writes=iter(script.split()))

    assert conditional.replace(backend, "head", b"mine", before=before, token=token) is False
    assert plain.read("head") == b"theirs"
