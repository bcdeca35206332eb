"""`cellar update` in processes of its own: broken off by kill -9, two at once, and what it prints."""

import json
import os
import signal
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from flows.provenance.corpora import recorded_corpora
from store import Store
from tests.e2e.workplace import TINY, Workplace, ended, wait_for

pytestmark = pytest.mark.slow

SOURCE = ("--set", "corpus.reader=jsonl", "--set", "corpus.path=docs.jsonl")


@pytest.fixture
def place(tmp_path: Path, home: dict[str, str], with_server: dict[str, str]) -> Workplace:
    """A folder with a source and nothing built."""
    texts = [(name, text[:300]) for name, text in sorted(topics.items()) if len(text) >= 300]
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in texts]
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    (tmp_path / "params.yaml").write_text(TINY.read_text().replace("  reader: folder\n  path: texts\n", ""))
    return Workplace(tmp_path, {**home, **with_server})


def test_a_killed_update_continues_and_ends_as_an_undisturbed_one(
    place: Workplace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    process = place.start("update", *SOURCE)
    wait_for(lambda: len(place.parts()) >= 4, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert Store.open(place.url).head("docs") is None

    # The claim that the killed run left does not keep the next one waiting.
    again = place.cellar("update", "--json", *SOURCE)
    assert again.code == 0, again.err
    made = json.loads(again.out)
    assert 0 < made["worked"] < made["documents"]
    assert place.store.verify(full=True).ok

    other = Workplace(tmp_path_factory.mktemp("undisturbed"), place.environment)
    for name in ("docs.jsonl", "params.yaml"):
        (other.folder / name).write_text((place.folder / name).read_text())
    undisturbed = json.loads(other.cellar("update", "--json", *SOURCE).out)
    assert undisturbed["snapshot"] == made["snapshot"]
    assert undisturbed["worked"] == undisturbed["documents"]


def test_of_two_updates_at_once_one_is_refused_or_waits(place: Workplace) -> None:
    first = place.start("update", "--json", *SOURCE)
    wait_for(lambda: place.parts(), first)
    os.killpg(first.pid, signal.SIGSTOP)  # in the middle, for as long as the others need to start

    refused = place.cellar("update", *SOURCE)
    assert refused.code == 7, refused.err
    assert "another run (" in refused.err
    assert f"process {first.pid}) works on docs in file:" in refused.err
    assert "--wait 10m" in refused.err

    second = place.start("update", "--json", "--wait", "3m", *SOURCE)
    os.killpg(first.pid, signal.SIGCONT)
    one, two = ended(first), ended(second)
    assert (one.code, two.code) == (0, 0), one.err + two.err
    made, again = json.loads(one.out), json.loads(two.out)
    assert (made["moved"], again["moved"], again["worked"]) == (True, False, 0)
    assert made["snapshot"] == again["snapshot"] == place.store.head("docs")
    assert [ref.name for ref in recorded_corpora(place.store, made["snapshot"])] == ["corpus/docs/report"]
