"""One run at a time works on a head, and what a killed one left is recognised."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import Claim, Store
from store.backend.local import LocalBackend
from store.errors import ClaimHeld
from store.format import claim_key, seal, unseal
from store.process import identity, is_dead
from store.turn import TURN_SECONDS
from tests.store.clocks import Clock, ClockedBackend

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


def test_verify_knows_claims_and_finds_damaged_ones(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    with store.claim("docs", owner="one"):
        pass
    report = store.verify()
    assert not report.findings
    assert not report.leftovers
    store.backend.put(claim_key("docs"), b"damaged")
    assert [finding.key for finding in store.verify().findings] == [claim_key("docs")]
