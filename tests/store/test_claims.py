"""One run at a time works on a head, and what a killed one left is recognised."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from store import Claim, Store, claims, elapsed
from store.backend.local import LocalBackend
from store.errors import ClaimHeld, CommitStateUnknown, CredentialsError, TokenMismatch
from store.format import claim_key, seal, unseal
from store.process import identity, is_dead
from store.turn import TURN_SECONDS
from tests.store.clocks import Clock, ClockedBackend
from tests.store.faulty import Call, Fault, FaultyBackend

HOLDER = """
import sys
from store.backend.local import LocalBackend
from store.claims import Claim
from pathlib import Path
with Claim(LocalBackend(Path(sys.argv[1])), "docs", owner="holder"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def clocked(tmp_path: Path) -> ClockedBackend:
    return ClockedBackend(LocalBackend(tmp_path), Clock())


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the claim."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_run_is_refused_and_told_by_whom_and_since_when(clocked: ClockedBackend) -> None:
    said = r"another run \(ada@host\) works on docs in .* since 20\d\d-.*lapses in \d+ seconds"
    with Claim(clocked, "docs", owner="ada@host"), pytest.raises(ClaimHeld, match=said):
        Claim(clocked, "docs", owner="bob@host").take()


def test_claims_on_different_names_do_not_meet(clocked: ClockedBackend) -> None:
    with Claim(clocked, "docs", owner="one"), Claim(clocked, "notes", owner="two") as other:
        other.check()


def test_a_claim_can_be_taken_again_when_it_was_given_back(clocked: ClockedBackend) -> None:
    with Claim(clocked, "docs", owner="one"):
        pass
    with Claim(clocked, "docs", owner="two") as claim:
        claim.check()


def test_a_claim_lapses_when_it_is_not_renewed_and_its_former_holder_learns_of_it(
    clocked: ClockedBackend,
) -> None:
    first = Claim(clocked, "docs", owner="one").take()
    clocked.clock.forward(clocked, seconds=TURN_SECONDS + 1)
    with Claim(clocked, "docs", owner="two"), pytest.raises(ClaimHeld):
        first.check()


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks at the clock finds that it is time for a renewal, and the thread looks all the time."""
    ticks = itertools.count(step=3600)
    monkeypatch.setattr(elapsed, "seconds", lambda: float(next(ticks)))
    monkeypatch.setattr(claims, "_RENEW_EVERY_S", 0.001)


class Line:
    """What the claim's thread meets: `trouble` with its first writes; then some renewals that go well."""

    def __init__(self, *trouble: Callable[[], Fault | None]) -> None:
        self.went_well = threading.Event()
        self.trouble = list(trouble)
        self.good = 0
        self._silent = False

    def __call__(self, call: Call) -> Fault | None:
        if self._silent and call.kind == "read":
            self._silent = False
            return Fault.REFUSED
        if call.kind != "replace":
            return None
        if self.trouble:
            return self.trouble.pop(0)()
        self.good += 1
        if self.good >= 3:
            self.went_well.set()
        return None

    def lost(self, fault: Fault) -> Callable[[], Fault]:
        """A write whose answer is lost, and nobody answers when it is looked for."""

        def lose() -> Fault:
            self._silent = True
            return fault

        return lose


def expired() -> Fault:
    raise CredentialsError("the credentials expired")


@pytest.mark.parametrize("what", ["nothing", "refused", "credentials", "dropped", "landed"])
def test_a_claim_is_renewed_whatever_happens_to_single_renewals(
    clocked: ClockedBackend, hours: None, what: str
) -> None:
    line = Line()
    trouble = {
        "nothing": [],
        "refused": [lambda: Fault.DENIED],
        "credentials": [expired, expired],
        "dropped": [line.lost(Fault.DROPPED)],
        "landed": [line.lost(Fault.LANDED), line.lost(Fault.LANDED)],
    }[what]
    faulty = FaultyBackend(clocked, line)
    with Claim(faulty, "docs", owner="one") as claim:
        line.trouble.extend(trouble)
        clocked.clock.forward(clocked, seconds=TURN_SECONDS + 1)  # as it was taken it counts no more
        line.good = 0
        line.went_well.clear()
        assert line.went_well.wait(30), "the claim was not renewed"
        with pytest.raises(ClaimHeld):
            Claim(clocked, "docs", owner="two").take()
        claim.check()
    Claim(clocked, "docs", owner="two").take()  # it was given back


@pytest.mark.parametrize("fault", [Fault.LANDED, Fault.LATE])
def test_a_renewal_without_an_answer_is_ours_whenever_it_arrives(
    clocked: ClockedBackend, hours: None, fault: Fault
) -> None:
    line = Line()
    faulty = FaultyBackend(clocked, line)
    claim = Claim(faulty, "docs", owner="one").take()
    line.trouble.append(line.lost(fault))
    with pytest.raises(CommitStateUnknown):
        super(Claim, claim).check()
    claim.check()
    faulty.wire.arrive()
    claim.check()
    super(Claim, claim).check()
    assert unseal(clocked.read(claim_key("docs")), claim_key("docs"))["owner"] == "one"


def test_a_renewal_that_arrives_before_the_next_one_is_not_taken_for_somebody_else_s(
    clocked: ClockedBackend, hours: None
) -> None:
    line = Line()
    faulty = FaultyBackend(clocked, line)
    claim = Claim(faulty, "docs", owner="one").take()
    line.trouble += [line.lost(Fault.LATE), faulty.wire.arrive]
    with pytest.raises(CommitStateUnknown):
        super(Claim, claim).check()
    super(Claim, claim).check()
    claim.check()


def take_over(backend: ClockedBackend, body: bytes) -> None:
    """Write over a claim that is being renewed, as it is at that moment: no renewal writes over this."""
    with suppress(TokenMismatch):
        return backend.replace(claim_key("docs"), body, token=backend.read_with_token(claim_key("docs"))[1])
    return take_over(backend, body)


def test_a_claim_that_somebody_took_over_is_renewed_no_more(clocked: ClockedBackend, hours: None) -> None:
    with Claim(clocked, "docs", owner="one") as claim:
        take_over(clocked, seal({"owner": "two", "id": "x", "seconds": TURN_SECONDS}))
        assert claim._thread is not None
        claim._thread.join(30)
        assert not claim._thread.is_alive()
        with pytest.raises(ClaimHeld):
            claim.check()
    assert unseal(clocked.read(claim_key("docs")), claim_key("docs"))["owner"] == "two"


def test_a_claim_that_cannot_be_given_back_fails_no_work(clocked: ClockedBackend) -> None:
    faulty = FaultyBackend(clocked)

    def refuse(call: Call) -> None:
        raise CredentialsError("the credentials expired")

    with Claim(faulty, "docs", owner="one"):
        faulty.schedule = refuse


def test_what_a_killed_process_left_is_taken_over_at_once(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    backend = LocalBackend(tmp_path)
    with pytest.raises(ClaimHeld, match=r"\(holder\)"):
        Claim(backend, "docs", owner="second").take()
    holder.kill()
    holder.wait()
    with Claim(backend, "docs", owner="second") as claim:
        claim.check()


@pytest.mark.parametrize("other", ["boot", "space"])
def test_a_process_of_another_boot_or_namespace_may_be_alive(
    clocked: ClockedBackend, holder: subprocess.Popen[str], other: str
) -> None:
    record = unseal(clocked.read(claim_key("docs")), claim_key("docs"))
    holder.kill()
    holder.wait()
    assert is_dead(record["process"])
    clocked.put(claim_key("docs"), seal({**record, "process": {**record["process"], other: "elsewhere"}}))
    with pytest.raises(ClaimHeld):
        Claim(clocked, "docs", owner="second").take()


def test_a_number_that_was_given_to_another_process_does_not_pass_for_the_first(tmp_path: Path) -> None:
    mine = identity()
    assert mine is not None
    assert not is_dead(mine)
    assert is_dead({**mine, "started": mine["started"] - 1})


def test_a_damaged_claim_counts_until_it_lapses(clocked: ClockedBackend) -> None:
    clocked.put(claim_key("docs"), b"damaged")
    with pytest.raises(ClaimHeld):
        Claim(clocked, "docs", owner="second").take()
    clocked.clock.forward(clocked, seconds=TURN_SECONDS + 1)
    with Claim(clocked, "docs", owner="second") as claim:
        claim.check()


def test_a_claim_from_a_clock_that_ran_ahead_counts_from_when_it_was_seen(
    clocked: ClockedBackend, tmp_path: Path
) -> None:
    first = Claim(clocked, "docs", owner="one").take()
    in_a_year = time.time() + 365 * 86_400
    os.utime(tmp_path / claim_key("docs"), (in_a_year, in_a_year))
    with pytest.raises(ClaimHeld, match="lapses in 300 seconds"):
        Claim(clocked, "docs", owner="two").take()
    first.check()
    clocked.clock.forward(clocked, seconds=TURN_SECONDS - 10)
    with pytest.raises(ClaimHeld, match=r"lapses in (10|9) seconds"):
        Claim(clocked, "docs", owner="two").take()
    clocked.clock.forward(clocked, seconds=10)
    Claim(clocked, "docs", owner="two").take()


def test_verify_knows_claims_and_finds_damaged_ones(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    with store.claim("docs", owner="one"):
        pass
    report = store.verify()
    assert not report.findings
    assert not report.leftovers
    store.backend.put(claim_key("docs"), b"damaged")
    assert [finding.key for finding in store.verify().findings] == [claim_key("docs")]
