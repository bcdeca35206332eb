"""The commands on stores, corpora, snapshots and tags, through the real command line and a real store."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.cli.session import Session
from flows.origin import code
from store import Store

Cellar = Callable[..., tuple[int, str, str]]
SUMMARY = Path(__file__).parents[1] / "report" / "summary.json"


@pytest.fixture
def texts(workplace: Path) -> Path:
    folder = workplace / "texts"
    folder.mkdir()
    for i in range(12):
        (folder / f"{i}.txt").write_text(f"Document {i} speaks of {i * i} words and of some more. " * 4)
    return folder


def as_json(result: tuple[int, str, str]) -> dict[str, object]:
    code, out, err = result
    assert code == 0, err
    return json.loads(out)


def test_init_makes_a_store_once(cellar: Cellar, workplace: Path) -> None:
    assert as_json(cellar("init", "--json"))["created"] is True
    assert as_json(cellar("init", "--json"))["created"] is False
    assert list(Store.open(str(workplace / "build" / "store")).log()) == []


def test_the_store_option_wins_over_the_environment(
    cellar: Cellar, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAR_STORE", f"file:{workplace}/from-variable")

    cellar("init", "--store", f"file:{workplace}/from-option")
    cellar("init")

    assert (workplace / "from-option" / "format.json").is_file()
    assert (workplace / "from-variable" / "format.json").is_file()


def test_a_name_that_is_no_utf_8_is_printed_as_json_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"caf\xe9 \xe2\x98\x83")
    Session(as_json=True).emit({"name": name}, [])
    printed = capfd.readouterr().out
    assert printed.encode("utf-8") == b'{\n "name": "caf\\udce9 \xe2\x98\x83"\n}\n'
    assert json.loads(printed) == {"name": name}


def test_a_command_that_makes_a_store_says_where(cellar: Cellar, texts: Path) -> None:
    build = ("corpus", "build", "--folder", str(texts), "--name", "t")
    _, _, err = cellar("--store", "typo", *build)
    assert err == f"cellar: made a new store at file:{Path.cwd()}/typo, where there was none\n"
    assert cellar("--store", "typo", *build)[::2] == (0, "")
    assert cellar("--store", "other", "--quiet", *build)[::2] == (0, "")


def test_a_corpus_is_built_pinned_for_the_next_command_and_recognised_again(
    cellar: Cellar, texts: Path
) -> None:
    first = as_json(cellar("corpus", "build", "--folder", "texts", "--name", "t", "--json"))
    again = as_json(cellar("corpus", "build", "--folder", str(texts), "--name", "t", "--json"))

    assert (first["documents"], first["reused"], again["reused"]) == (12, False, True)
    assert first["shards"] == again["shards"]
    pin = json.loads(Path("pins/corpus.json").read_text())
    assert pin["refs"] == first["shards"]
    assert pin["figures"]["documents"] == 12


def make_sources(workplace: Path) -> dict[str, list[str]]:
    (workplace / "d.jsonl").write_text("".join(json.dumps({"id": n, "text": n * 9}) + "\n" for n in "abc"))
    pq.write_table(pa.table({"id": ["a", "b"], "text": ["A" * 9, "B" * 9]}), workplace / "d.parquet")
    (workplace / "d.txt").write_text("# one\ntext\n# two\nmore\n")
    return {
        "jsonl": ["--jsonl", "d.jsonl"],
        "parquet": ["--parquet", "d.parquet"],
        "text": ["--text", "d.txt", "--split-on", "^#"],
        "set": ["--set", "corpus.reader=jsonl", "--set", "corpus.path=d.jsonl", "--set", "corpus.limit=1"],
    }


@pytest.mark.parametrize(("source", "documents"), [("jsonl", 3), ("parquet", 2), ("text", 2), ("set", 1)])
def test_every_reader_has_its_option(cellar: Cellar, workplace: Path, source: str, documents: int) -> None:
    arguments = make_sources(workplace)[source]

    assert as_json(cellar("corpus", "build", *arguments, "--json"))["documents"] == documents


def test_a_parameter_file_is_read_and_overridden(cellar: Cellar, texts: Path) -> None:
    Path("params.yaml").write_text("corpus:\n  reader: folder\n  path: texts\n  shards: 2\n  name: filed\n")
    Path("other.yaml").write_text("corpus: {reader: folder, path: texts, shards: 6}\n")

    assert len(as_json(cellar("corpus", "build", "--json"))["shards"]) == 2
    assert len(as_json(cellar("corpus", "build", "--params", "other.yaml", "--json"))["shards"]) == 6
    assert len(as_json(cellar("corpus", "build", "--set", "corpus.shards=4", "--json"))["shards"]) == 4


def test_corpus_show_reports_what_was_left_out(cellar: Cellar, texts: Path) -> None:
    (texts / "copy.txt").write_bytes((texts / "0.txt").read_bytes())
    for i in range(15):
        (texts / f"latin-{i:02d}.txt").write_bytes(b"caf\xe9")
    cellar("corpus", "build", "--folder", "texts", "--name", "t")

    code, out, _ = cellar("corpus", "show", "t")

    assert code == 0
    assert json.loads(Path("pins/corpus.json").read_text())["figures"]["skipped"] == 15
    assert "12 documents" in out
    assert "left out: 1 duplicate, 15 skipped" in out
    assert "latin-00.txt  not UTF-8" in out
    assert "... 5 more" in out
    assert "latin-14.txt" in cellar("corpus", "show", "t", "--skipped")[1]


def test_corpus_show_without_a_corpus(cellar: Cellar, workplace: Path) -> None:
    cellar("init")

    assert cellar("corpus", "show")[:2] == (0, "no corpus yet\n")
    code, _, err = cellar("corpus", "show", "t")
    assert code == 4
    assert "has no corpus t; run `cellar corpus build` first" in err


def test_the_tokenizer_is_learned_from_the_pinned_corpus(cellar: Cellar, texts: Path) -> None:
    cellar("corpus", "build", "--folder", "texts")

    learned = as_json(cellar("corpus", "tokenizer", "--set", "tokenizer.vocab_size=270", "--json"))

    assert str(learned["tokenizer"]).startswith("tokenizer/bpe@")
    assert learned["vocab_size"] == 270
    assert json.loads(Path("pins/tokenizer.json").read_text())["refs"] == [learned["tokenizer"]]


def test_a_tokenizer_without_a_corpus_names_the_command_that_comes_first(
    cellar: Cellar, workplace: Path
) -> None:
    cellar("init")

    code, _, err = cellar("corpus", "tokenizer")

    assert code == 2
    assert "run `cellar corpus build` first" in err


def test_snapshots_are_pinned_with_requirements_tagged_listed_and_shown(cellar: Cellar, texts: Path) -> None:
    corpus = as_json(cellar("corpus", "build", "--folder", "texts", "--name", "t", "--json"))

    pinned = as_json(cellar("snapshot", "pin", "corpus/t/report", "--tag", "first", "-m", "all", "--json"))

    assert pinned["count"] == 1 + len(corpus["shards"])  # type: ignore[arg-type]
    [listed] = json.loads(cellar("snapshot", "ls", "--json")[1])
    assert (listed["snapshot"], listed["names"], listed["message"]) == (pinned["snapshot"], ["first"], "all")
    shown = as_json(cellar("snapshot", "show", "first", "--json"))
    assert {f"{e['name']}@{e['version']}" for e in shown["elements"]} > set(corpus["shards"])  # type: ignore
    assert pinned["snapshot"] in cellar("snapshot", "show", str(pinned["snapshot"])[:8])[1]
    assert pinned["snapshot"] in cellar("snapshot", "ls")[1]


def test_patterns_and_exact_references_choose_elements(cellar: Cellar, texts: Path) -> None:
    corpus = as_json(cellar("corpus", "build", "--folder", "texts", "--name", "t", "--json"))
    first = corpus["shards"][0]  # type: ignore[index]

    assert as_json(cellar("snapshot", "pin", "corpus/t/shard-0*", "--json"))["count"] == 10
    assert as_json(cellar("snapshot", "pin", first, "--json"))["count"] == 1
    assert cellar("snapshot", "pin", "memory/*")[0] == 4
    assert cellar("snapshot", "pin")[0] == 2


def test_a_tag_never_moves(cellar: Cellar, texts: Path) -> None:
    cellar("corpus", "build", "--folder", "texts", "--name", "t")
    one = as_json(cellar("snapshot", "pin", "corpus/t/shard-00", "--json"))["snapshot"]
    two = as_json(cellar("snapshot", "pin", "corpus/t/shard-01", "--json"))["snapshot"]

    assert cellar("tag", "v1", str(one)[:12])[0] == 0
    assert cellar("tag", "v1", str(two))[0] == 7
    assert as_json(cellar("tag", "--json")) == {"v1": one}
    assert cellar("tag", "v2")[0] == 2


def test_the_log_lists_commits_newest_first(cellar: Cellar, texts: Path) -> None:
    cellar("corpus", "build", "--folder", "texts", "--name", "t")
    cellar("snapshot", "pin", "corpus/t/shard-00", "-m", "only one")

    newest, oldest = json.loads(cellar("log", "--json")[1])

    assert newest["message"] == "only one"
    assert oldest["message"] == "Ingest corpus t: 12 documents"
    assert oldest["run"].keys() == {"command", "host", "user", "source", *code()}
    assert (oldest["run"]["command"], oldest["run"]["source"]) == ("corpus build", "texts")
    assert "1 more" in cellar("log", "--limit", "1")[1]


def test_verify_is_quiet_about_an_intact_store_and_names_damage(cellar: Cellar, texts: Path) -> None:
    cellar("corpus", "build", "--folder", "texts", "--name", "t")
    assert as_json(cellar("verify", "--full", "--json"))["ok"] is True

    [pack] = [path for path in Path("build/store/packs").rglob("*") if path.is_file()]
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(data)
    code, out, err = cellar("verify", "--full")

    assert code == 5
    assert pack.name in out
    assert "1 finding" in err


def test_the_figures_of_an_evaluation_say_how_many_documents_were_skipped(
    cellar: Cellar, workplace: Path
) -> None:
    summary = json.loads(SUMMARY.read_text())
    summary["corpus"] |= {"skipped": 1234}
    (workplace / "skipped.json").write_text(json.dumps(summary))
    (workplace / "complete.json").write_text(json.dumps(summary | {"corpus": {"documents": 2}}))

    assert "rejected, 1,234 skipped while reading" in cellar("eval", "show", "skipped.json")[1]
    assert "skipped" not in cellar("eval", "show", "complete.json")[1]


def test_the_figures_of_an_audited_evaluation_stand_side_by_side(cellar: Cellar, workplace: Path) -> None:
    summary = json.loads(SUMMARY.read_text())
    (workplace / "summary.json").write_text(json.dumps(summary))
    audited = [line.split() for line in cellar("eval", "show", "summary.json")[1].splitlines()]
    summary.pop("leakage")
    (workplace / "summary.json").write_text(json.dumps(summary))

    [tasks] = [line for line in audited if line[:3] == ["documents", "of", "the"]]
    assert tasks[-9:] == ["241", "42", "(17.4", "%)", "184", "(76.3", "%)", "20.4", "%"]
    assert ["retrieved", "500", "14", "2", "75"] in audited
    [losses] = [line for line in audited if line[:2] == ["nats,", "retrieved"]]
    assert losses[2:] == ["0.0345", "[0.0100,", "0.0684]", "0.0220", "[0.0072,", "0.0460]", "-"]
    assert "near-duplicates" not in cellar("eval", "show", "summary.json")[1]
