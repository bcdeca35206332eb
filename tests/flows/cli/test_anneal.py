"""The commands on shadows, through the real command line, store, flow and a tiny host."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from store import Element, Ref, Store
from tasks.corpus import is_worker_shard, load_shard
from tasks.hosts import find_host
from tests.copied_memories import remember
from tests.tiny_host import write_tiny_host

Cellar = Callable[..., tuple[int, str, str]]
SMALL = (
    *("--set", "host.name=tiny", "--set", "host.dtype=float32", "--set", "shadow.layers=[1,2]"),
    *("--set", "shadow.chunk_tokens=32", "--set", "shadow.chunks=6"),
    *("--set", "shadow.held.selection_tokens=256", "--set", "shadow.held.guard_tokens=256"),
    *("--set", "shadow.held.sealed_tokens=512"),
)

SEARCH = (
    *("--set", 'anneal.retention=[{"path": "squares.txt"}]', "--set", "anneal.evaluations=12"),
    *("--set", "anneal.passages=2", "--set", "anneal.passage_tokens=64", "--set", "anneal.scored=32"),
)
SEALED = (
    *("--set", "anneal.sealed.chunk_tokens=96", "--set", "anneal.sealed.card_tokens=5"),
    *("--set", 'anneal.sealed.baselines=["single", "random"]'),
)


@pytest.fixture
def text(workplace: Path) -> Path:
    write_tiny_host(workplace / "mine", layers=3)
    squares = "".join(f"{n * n} IS A SQUARE, {n} IS NOT?\n" for n in range(600))
    (workplace / "squares.txt").write_text(squares)
    path = workplace / "casks.txt"
    path.write_text("".join(f"the {n}th cask is cool; keep it shut.\n" for n in range(200)))
    return path


def planned(cellar: Cellar, *arguments: str) -> dict[str, list[str]]:
    """The steps of a plan that would run, with their reasons."""
    code, out, err = cellar("plan", *arguments, "--json")
    assert code == 0, err
    return {step["name"]: step["reasons"] for step in json.loads(out)["steps"] if step["state"] != "done"}


@pytest.mark.usefixtures("prefect_server")
def test_a_text_is_written_shown_and_merged(cellar: Cellar, workplace: Path, text: Path) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    casks = ("--source", str(text), "--name", "casks", *SMALL)
    assert planned(cellar, "anneal-eval", *casks, *SEARCH) == {
        "writing": ["never built"],
        "consolidation": ["its input will change: writing"],
        "evaluation": ["its input will change: consolidation"],
    }
    code, out, err = cellar("anneal", "write", "--source", str(text), "--name", "casks", *SMALL, "--json")
    assert code == 0, err
    written = json.loads(out)
    assert planned(cellar, "anneal-write", *casks) == {}
    assert planned(cellar, "anneal-write", *casks, "--set", "shadow.chunks=5") == {
        "writing": ["chunks 6 -> 5"]
    }
    squares = ("--source", "squares.txt", "--name", "casks", *SMALL)
    assert planned(cellar, "anneal-write", *squares) == {"writing": ["its text changed"]}
    assert written["shadow"].startswith("shadow/casks.written@")
    assert (written["layers"], written["alphas"], written["chunks"]) == ([1, 2], [1.0, 1.0], 6)
    again = cellar("anneal", "write", "--source", str(text), "--name", "casks", *SMALL, "--json")
    assert json.loads(again[1]) == written
    code, out, err = cellar(
        *("anneal", "consolidate", "--source", str(text), "--name", "casks", "--json"), *SMALL, *SEARCH
    )
    assert code == 0, err
    assert planned(cellar, "anneal-consolidate", *casks, *SEARCH) == {}
    other = ("--set", 'anneal.retention=[{"path": "casks.txt"}]')
    assert planned(cellar, "anneal-consolidate", *casks, *SEARCH, *other) == {
        "consolidation": ["other texts than before"]
    }
    found = json.loads(out)
    assert (found["evaluations"], found["host"]) == (12, written["host"])
    assert "guard " in cellar("anneal", "show", "casks")[1]
    code, out, err = cellar(
        *("anneal", "eval", "--source", str(text), "--name", "casks"), *SMALL, *SEARCH, *SEALED
    )
    assert code == 0, err
    assert out.splitlines()[0].startswith("5 sealed chunks, host ")
    assert planned(cellar, "anneal-eval", *casks, *SEARCH, *SEALED) == {}
    assert planned(cellar, "anneal-eval", *casks, *SEARCH) == {"evaluation": ["never evaluated so"]}
    result = json.loads((workplace / "results" / "anneal.json").read_text())
    assert result["shadow"] == found["shadow"]
    assert set(result["gain"]) == {"naive", "consolidated", "single", "random"}
    assert [course[-1][0] for course in result["courses"].values()] == [12, 12, 12]
    assert out.splitlines()[-2:] == ["wrote results/anneal.json", "wrote results/anneal.html"]
    assert "one alpha" in (workplace / "results" / "anneal.html").read_text(encoding="utf-8")
    assert cellar("eval", "show")[1].splitlines() == out.splitlines()[:-2]
    code, out, _ = cellar("anneal", "show")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (
        0,
        ["shadow/casks", "shadow/casks.written"],
    )
    assert "layer 1  1.000  ####################" in cellar("anneal", "show", "casks.written")[1]
    code, out, err = cellar("anneal", "merge", "casks.written", "--out", "merged", *SMALL)
    assert code == 0, err
    assert out.splitlines()[-1] == "wrote   merged, 2 layers"
    card = (workplace / "merged" / "README.md").read_text()
    assert f"| shadow | `{written['shadow']}` |" in card
    [again] = [line.removeprefix("cellar ") for line in card.splitlines() if line.startswith("cellar ")]
    code, _, err = cellar(*shlex.split(again), *SMALL)
    assert code == 0, err
    [check] = [line for line in card.splitlines() if line.startswith("(cd again")]
    sums = subprocess.run(["bash", "-c", check], cwd=workplace, capture_output=True, text=True, check=True)
    assert f"```\n{sums.stdout}```" in card
    for path in (workplace / "merged").iterdir():
        assert (workplace / "again" / path.name).read_bytes() == path.read_bytes()
    code, _, err = cellar("host", "add", "merged", "merged")
    assert code == 0, err


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("write", "--source", "casks.txt", "--set", "host.name=other"), 4, "has no host other"),
        (("show", "casks"), 4, "has no shadow/casks"),
        (("write", "--set", "shadow.step_size=0"), 2, "shadow.step_size"),
        (("consolidate", "--source", "casks.txt", *SMALL), 2, "set anneal.retention"),
        (("cumulate",), 2, "learns two domains or more"),
        (("continue", "casks", "--text", " "), 2, "name shadows"),
        (("attach", "--to", "reader"), 2, "which shadows?"),
        (("attach", "casks", "--to", "reader"), 4, "has no shadow/casks"),
        (("detach", "--from", "reader"), 2, "name the shadows to detach, or give --all"),
        (("detach", "--all", "--from", "reader"), 4, "no snapshot, tag or head"),
        (("show", "head:reader"), 4, "no snapshot, tag or head"),
        (("facts", "--set", "host.name=other"), 4, "has no host other"),
        (("facts", *SMALL), 2, "set anneal.retention"),
        (("compose", "--snapshot", "head:docs"), 2, "which shadows?"),
        (("compose", "casks"), 2, "run `cellar snapshot pin` first, or name a snapshot with --snapshot"),
        (("compose", "casks", "--snapshot", "head:docs"), 4, "no snapshot, tag or head"),
        (("merge", "--out", "x"), 2, "which shadows?"),
        (("merge", "casks", "--out", "x", *SMALL), 4, "has no shadow/casks"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    cellar: Cellar, text: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    found, _, err = cellar("anneal", *arguments)
    assert found == code, err
    assert sentence in err


CASKS = ("--set", 'shadow.domain={"path": "casks.txt"}')
DOMAINS = ("--set", 'anneal.domains={"a": {"path": "casks.txt"}, "b": {"path": "gone.txt"}}')
GONE = ("--set", 'anneal.retention=[{"path": "gone.txt"}]')


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("facts",), 2, "set anneal.retention"),
        (("facts", *GONE), 2, "gone.txt"),
        (("facts", *SEARCH, "--set", "facts.untaught=50", "--set", "facts.facts_each=200"), 2, "too many"),
        (("facts", *SEARCH, "--set", 'shadow.onto=["gone"]'), 4, "has no shadow/gone"),
        (("write", "--source", "gone.txt"), 2, "gone.txt"),
        (("write",), 2, "no text is named"),
        (("write", "--set", 'shadow.domain={"path": ""}'), 2, "it is empty; give a path"),
        (("consolidate", *CASKS), 2, "set anneal.retention"),
        (("consolidate", *CASKS, "--set", 'anneal.retention=[{"corpus": "docs"}]'), 4, "has no corpus docs"),
        (("eval", *CASKS), 2, "set anneal.retention"),
        (("eval", *CASKS, *GONE), 2, "gone.txt"),
        (("cumulate", *DOMAINS), 2, "set anneal.retention"),
        (("cumulate", *DOMAINS, *SEARCH), 2, "gone.txt"),
    ],
)
def test_texts_that_are_not_there_are_said_before_anything_is_started(
    cellar: Cellar,
    workplace: Path,
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.setitem(sys.modules, "flows.serving.api", None)  # Prefect cannot be started
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    command, *rest = arguments
    found, _, err = cellar("anneal", command, *SMALL, *rest)
    assert found == code, err
    assert sentence in err


def test_files_of_a_folder_that_cannot_be_used_are_told_of(
    cellar: Cellar, workplace: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "flows.serving.api", None)  # Prefect cannot be started
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    notes = workplace / "notes"
    notes.mkdir()
    for name, content in {"a": b"a cask of wine", "b": b"\xff", "c": b"", "d": b"a cask of wine"}.items():
        (notes / f"{name}.txt").write_bytes(content)
    searched = ("--set", 'anneal.retention=[{"path": "notes"}, {"path": "gone.txt"}]')
    code, _, err = cellar("anneal", "eval", "--source", "notes", *SMALL, *searched)
    assert code == 2, err
    told = [line for line in err.splitlines() if "left out" in line]
    assert told == ["cellar: notes: 2 of 4 files are left out, the first is b.txt: not UTF-8"] * 2


def publish(store: Store, kind: str, name: str, *requires: Ref, **provenance: str) -> Ref:
    """An element of a few bytes, which nobody opens."""
    element = Element(
        kind,
        name,
        name.encode(),
        media="text/plain",
        requires=[one.version for one in requires],
        provenance=provenance,
    )
    [ref] = store.publish([element], message=name)
    return ref


@pytest.fixture
def shelf(cellar: Cellar, workplace: Path, text: Path) -> Store:
    """Shadows of two hosts, and snapshots that lack one thing after another, none of which can be opened."""
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    store = Store.open(str(workplace / "build" / "store"))
    tiny = find_host(store, "tiny").ref
    written = publish(store, "shadow", "casks.written", tiny, document="ab" * 32)
    publish(store, "shadow", "casks", tiny, written, written=str(written), document="ab" * 32)
    publish(store, "shadow", "foreign", publish(store, "host", "other"))
    index, reranker = (publish(store, kind, "docs") for kind in ("index", "reranker"))
    memories = [publish(store, "memory", name, document="cd" * 32) for name in ("a", "b")]
    store.tag("bare", store.pin(memories, message="no index").id)
    store.tag("one", store.pin([index, reranker, *memories[:1]], message="one memory").id)
    store.tag("lost", store.pin([index, reranker, *memories], message="no corpus").id)
    return store


FOREIGN = "shadow/foreign belongs to host/other@"
TWICE = "was made from shadow/casks.written@"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("compose", "gone", "--snapshot", "lost"), 4, "has no shadow/gone"),
        (("compose", "foreign", "--snapshot", "lost"), 2, FOREIGN),
        (("compose", "casks", "casks.written", "--snapshot", "lost"), 2, TWICE),
        (("compose", "casks", "--snapshot", "lost", "--set", "host.name=gone"), 4, "has no host gone"),
        (("compose", "casks", "--snapshot", "gone"), 4, "no snapshot, tag or head"),
        (("compose", "casks", "--snapshot", "bare"), 4, "holds no index and no reranker"),
        (("compose", "casks", "--snapshot", "one"), 2, "holds 1 of the two or more memories"),
        (("compose", "casks", "--snapshot", "lost"), 2, "no corpus in"),
        (("compose", "casks", "--snapshot", "lost", *CASKS), 5, "is not the text that a named shadow was"),
        (
            ("compose", "casks", "--snapshot", "lost", "--set", 'shadow.domain={"path": "gone.txt"}'),
            2,
            "gone",
        ),
        (("attach", "gone", "--to", "reader"), 4, "has no shadow/gone"),
        (("attach", "casks", "foreign", "--to", "reader"), 2, "attach shadows of one host"),
        (("attach", "casks", "casks.written", "--to", "reader"), 2, TWICE),
        (("attach", "casks", "--to", "lost?"), 2, "lost?"),
        (("merge", "foreign", "--out", "new"), 2, FOREIGN),
        (("merge", "casks.written", "casks", "--out", "new"), 2, TWICE),
        (("continue", "foreign", "--text", "the 7th cask"), 2, FOREIGN),
        (("continue", "casks", "casks.written", "--text", "the 7th cask"), 2, TWICE),
        (("write", *CASKS, "--set", 'shadow.onto=["foreign"]'), 2, FOREIGN),
        (("write", *CASKS, "--set", 'shadow.onto=["casks", "casks.written"]'), 2, TWICE),
        (("facts", *SEARCH, "--set", 'shadow.onto=["foreign"]'), 2, FOREIGN),
    ],
)
def test_what_the_store_says_of_shadows_and_snapshots_is_refused_without_a_host_and_without_prefect(
    cellar: Cellar,
    shelf: Store,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.setitem(sys.modules, "flows.serving.api", None)
    monkeypatch.setattr("flows.hosts.open_host", None)
    tip = shelf.tip().sequence
    command, *rest = arguments
    small = () if command == "attach" else SMALL
    found, _, err = cellar("anneal", command, *small, *rest)
    assert found == code, err
    assert sentence in err
    assert shelf.tip().sequence == tip


def test_what_cannot_be_attached_is_said_without_torch(shelf: Store, workplace: Path) -> None:
    arguments = ["anneal", "attach", "casks", "casks.written", "--to", "reader"]
    program = (
        f"import sys; from flows.cli import main; code = main({arguments!r}); "
        "print(code, [name for name in ('torch', 'transformers', 'prefect') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=workplace)
    assert ran.stdout == "2 []\n", ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("merge", "casks", "--out", "mine"), 2, "mine is there already"),
        (("merge", "casks", "--out", "link"), 2, "link is there already"),
        (("merge", "casks", "--out", "casks.txt/new"), 2, "casks.txt is no folder"),
        (("merge", "casks", "--out", "a\0b"), 2, "--out holds a zero byte"),
        (("merge", "casks", "--out", "a" * 300), 2, "is too long for a path"),
        (("merge", "casks", "--out", "new"), 4, "has no shadow/casks"),
        (("continue", "casks", "--text", "the 7th cask"), 4, "has no shadow/casks"),
        (("continue", "casks", "--text", "caf\udce9"), 2, "--text holds bytes that are no UTF-8"),
        (("continue", "head:reader", "--text", "the 7th cask"), 4, "no snapshot, tag or head"),
    ],
)
def test_what_is_missing_or_in_the_way_is_said_before_the_host_is_opened(
    cellar: Cellar,
    workplace: Path,
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    (workplace / "link").symlink_to("nowhere")
    monkeypatch.setattr("flows.hosts.open_host", None)
    found, _, err = cellar("anneal", *arguments, *SMALL)
    assert found == code, err
    assert sentence in err


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("command", ["facts", "eval", "cumulate"])
def test_texts_that_are_too_short_are_said_before_anything_is_written(
    cellar: Cellar, workplace: Path, text: Path, command: str
) -> None:
    (workplace / "few.txt").write_text("Six words are no retention text.\n")
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    two = 'anneal.domains={"a": {"path": "casks.txt"}, "b": {"path": "few.txt"}}'
    retention = "squares.txt" if command == "cumulate" else "few.txt"
    few = ("--set", f'anneal.retention=[{{"path": "{retention}"}}]', "--set", two)
    code, _, err = cellar("anneal", command, *SMALL, *SEARCH, *CASKS, *few)
    assert code == 2, err
    assert "tokens for its sealed part" in err
    assert not [*Store.open(str(workplace / "build" / "store")).catalog().rows("shadow")]


@pytest.mark.usefixtures("prefect_server")
def test_domains_are_learned_one_after_another(cellar: Cellar, workplace: Path, text: Path) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    (workplace / "brackets.txt").write_text("".join(f"[{n}] -> ({n}, {n})\n" for n in range(400)))
    domains = '{"casks": {"path": "casks.txt"}, "brackets": {"path": "brackets.txt"}}'
    two = ("--set", f"anneal.domains={domains}", "--set", "shadow.name=two", *SMALL, *SEARCH, *SEALED)
    before = planned(cellar, "anneal-cumulate", *two)
    code, out, err = cellar("anneal", "cumulate", *two)
    assert code == 0, err
    assert before["writing of two.casks"] == ["never built"]
    assert before["writing of two.brackets"] == ["its input will change: domains before it"]
    assert planned(cellar, "anneal-cumulate", *two) == {}
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["casks", "brackets"]
    result = json.loads((workplace / "results" / "cumulative.json").read_text())
    assert [ref.partition("@")[0] for ref in result["shadows"]] == ["shadow/two.casks", "shadow/two.brackets"]
    assert len(result["losses"]["retention"]) == 3
    assert "brackets" in (workplace / "results" / "cumulative.html").read_text(encoding="utf-8")
    code, out, err = cellar(
        *("anneal", "continue", "two.casks", "--text", "the 7th cask", "--tokens", "9", *SMALL, "--json")
    )
    assert code == 0, err
    continued = json.loads(out)
    assert continued["shadows"] == result["shadows"][:1]
    assert continued["without"]
    code, out, err = cellar("anneal", "attach", "two.casks", "two.brackets", "--to", "reader")
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines()] == [
        *("head:reader", "shadow/two.casks", "shadow/two.brackets", "snapshot")
    ]
    kept = json.loads(cellar("anneal", "show", "head:reader", "--json")[1])
    assert kept["shadows"] == result["shadows"]
    code, out, err = cellar("anneal", "merge", "head:reader", "--out", "merged", *SMALL, "--json")
    assert code == 0, err
    assert json.loads(out)["shadows"] == result["shadows"]
    code, out, err = cellar("anneal", "detach", "--all", "--from", "reader")
    assert (code, out.splitlines()[1]) == (0, "  nothing attached"), err
    assert json.loads(cellar("anneal", "show", "--json")[1])["attached"][0]["shadows"] == []
    code, out, err = cellar(
        *("anneal", "continue", "head:reader", "--text", "the 7th cask", "--tokens", "9", *SMALL, "--json")
    )
    assert code == 0, err
    assert json.loads(out)["with"] == json.loads(out)["without"] == continued["without"]
    assert cellar("head", "rollback", "reader")[0] == 0
    assert json.loads(cellar("anneal", "show", "head:reader", "--json")[1]) == kept


@pytest.mark.usefixtures("prefect_server")
def test_strings_of_a_snapshot_are_continued_with_shadows_and_with_what_is_retrieved(
    cellar: Cellar, workplace: Path, text: Path
) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    assert cellar("anneal", "write", "--source", str(text), "--name", "casks", *SMALL)[0] == 0
    assert cellar("anneal", "attach", "casks.written", "--to", "reader")[0] == 0
    (workplace / "notes").mkdir()
    for name in sorted(name for name, topic in topics.items() if 800 <= len(topic) <= 2500)[:16]:
        (workplace / "notes" / f"{name}.txt").write_text(topics[name])
    assert cellar("corpus", "build", "--folder", "notes", "--set", "corpus.shards=2")[0] == 0
    store = Store.open(str(workplace / "build" / "store"))
    shards = [row.ref for row in store.catalog().rows("corpus") if "/shard-" in row.name]
    [shard] = [ref for ref in shards if is_worker_shard(ref)]
    snapshot = remember(store, load_shard(store.read(shard)))
    store.tag("notes", snapshot.id)
    small = (
        *("--set", "composition.passages=3", "--set", "composition.cue_tokens=40"),
        *("--set", "composition.target_tokens=8", "--set", "composition.context_tokens=30"),
    )
    asked = ("head:reader", "--snapshot", "notes", *small, *SMALL)
    code, out, err = cellar("plan", "anneal-compose", *asked)
    assert code == 0, err
    assert "evaluation  to run  0 of 18 strings" in out
    code, out, err = cellar("anneal", "compose", *asked)
    assert code == 0, err
    assert planned(cellar, "anneal-compose", *asked) == {}
    renamed = ("--set", "composition.name=other")
    assert planned(cellar, "anneal-compose", *asked, *renamed) == {"evaluation": ["never evaluated so"]}
    assert out.splitlines()[0].startswith(f"3 strings of snapshot {snapshot.id[:12]}; the index finds ")
    result = json.loads((workplace / "results" / "composition.json").read_text())
    assert result["snapshot"] == snapshot.id
    assert [ref.partition("@")[0] for ref in result["shadows"]] == ["shadow/casks.written"]
    named = [line.split("  ")[0] for line in out.splitlines()[5:10]]
    assert named == result["order"] == ["host", "shadow", "text", "shadow + text", "other text"]
    assert cellar("eval", "show")[1] == out.replace("wrote results/composition.json\n", "")


@pytest.mark.usefixtures("prefect_server")
def test_made_up_facts_are_taught_and_asked_for(cellar: Cellar, workplace: Path, text: Path) -> None:
    assert cellar("host", "add", "tiny", "mine")[0] == 0
    few = (
        *("--set", "facts.relations=1", "--set", "facts.facts_each=3", "--set", "facts.untaught=2"),
        *("--set", "facts.passes=1", "--set", "facts.said_tokens=4", "--set", "facts.resamples=100"),
    )
    asked = (*few, *SMALL, *SEARCH, *SEALED)
    code, out, err = cellar("plan", "anneal-facts", *asked)
    assert code == 0, err
    assert [" ".join(line.split()[:7]) for line in out.splitlines()[2:4]] == [
        "lessons to run 0 of 2 lessons",
        "evaluation to run 0 of 9 facts",
    ]
    code, out, err = cellar("anneal", "facts", *asked)
    assert code == 0, err
    assert planned(cellar, "anneal-facts", *asked) == {}
    assert planned(cellar, "anneal-facts", *asked, "--set", "facts.resamples=101") == {
        "evaluation": ["never evaluated so"]
    }
    assert planned(cellar, "anneal-facts", *asked, "--set", "facts.seed=3") == {
        "lessons": ["never taught so: varied, repeated"],
        "evaluation": ["its input will change: lessons"],
    }
    lines = out.splitlines()
    assert lines[0].startswith("3 made-up facts, ")
    assert [line.split()[0] for line in lines[2:4]] == ["varied", "repeated"]
    result = json.loads((workplace / "results" / "facts.json").read_text())
    assert set(result["new"]["figures"]) == {"host", "varied", "repeated"}
    assert cellar("eval", "show")[1] == out.replace("wrote results/facts.json\n", "")
    again = json.loads(cellar("anneal", "facts", *few, *SMALL, *SEARCH, *SEALED, "--json")[1])
    assert again == result
