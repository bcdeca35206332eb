"""A package gives its losses again, bit for bit, without its store of origin; forged ones are refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from store import Element, Store, canonical_json
from store.errors import InputError, IntegrityError
from store.transfer import export_snapshot
from tasks.codec import Codec
from tasks.corpus import Tokenizer
from tasks.errors import BadPayload
from tasks.evaluation import encode_samples, evaluate_attachment, load_samples
from tasks.package import load_posed, run_package, write_package
from tests.tasks.evaluation.conftest import PARAMS, codec, core, texts, tokenizer  # noqa: F401 - fixtures
from tests.tasks.evaluation.test_step import Place, furnish
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer, codec: Codec) -> Place:  # noqa: F811
    return furnish(f"file:{tmp_path_factory.mktemp('package')}/store", tokenizer, codec)


def write(place: Place, path: Path) -> Path:
    write_package(
        place.store,
        PARAMS,
        snapshot=place.snapshot,
        core=place.core,
        corpus=place.corpus,
        path=path,
        work_dir=path.parent / "work",
    )
    assert list((path.parent / "work").iterdir()) == []
    return path


@pytest.fixture(scope="module")
def packaged(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(place, tmp_path_factory.mktemp("packaged") / "package")


def test_a_package_gives_the_same_losses_bit_for_bit(place: Place, packaged: Path) -> None:
    evaluation = evaluate_attachment(
        place.store, PARAMS, snapshot=place.snapshot, core=place.core, corpus=place.corpus
    )

    found = run_package(str(packaged))

    assert found.identical
    assert found.largest == 0
    assert found.source == place.snapshot.id
    assert found.core == str(place.core)
    assert found.tasks == evaluation.summary["tasks"]
    assert {name: loss.found for name, loss in found.conditions.items()} == pytest.approx(
        evaluation.summary["nll"], abs=1e-12
    )


def test_only_what_tasks_are_shown_is_packaged(place: Place, packaged: Path) -> None:
    opened = Store.open(str(packaged))
    [pinned] = opened.snapshots()
    snapshot = opened.snapshot(pinned.id)
    memories = {row.name: row.version for row in snapshot.rows("memory")}
    [posed] = [row for row in snapshot.rows("evaluation") if row.name.endswith("/tasks")]

    assert memories.keys() == load_posed(snapshot.read(posed)).documents.keys()
    assert memories == {name: place.snapshot.get(name).version for name in memories}
    assert len(memories) < len(place.snapshot.rows("memory"))
    assert snapshot.kinds.keys() == {"memory", "codec", "tokenizer", "core", "evaluation"}


def test_the_same_evaluation_gives_the_same_file(place: Place, tmp_path: Path) -> None:
    one, other = (write(place, tmp_path / name) for name in ("one.tar", "other.tar"))

    assert one.read_bytes() == other.read_bytes()
    assert run_package(str(one)).identical


def test_what_lies_at_the_destination_stays(place: Place, tmp_path: Path) -> None:
    taken = tmp_path / "taken.tar"
    taken.write_text("mine")

    with pytest.raises(InputError):
        write(place, taken)

    assert taken.read_text() == "mine"


def test_every_changed_byte_is_noticed(packaged: Path, tmp_path: Path, place: Place) -> None:
    tar = write(place, tmp_path / "package.tar")
    data = bytearray(tar.read_bytes())
    data[len(data) // 2] ^= 1
    tar.write_bytes(data)

    with pytest.raises(IntegrityError, match=r"package\.tar"):
        run_package(str(tar))


def test_a_store_is_no_package(place: Place) -> None:
    with pytest.raises(InputError):
        run_package(place.store.url)


def test_an_export_without_an_evaluation_is_no_package(place: Place, tmp_path: Path) -> None:
    export_snapshot(place.store, place.snapshot, tmp_path / "export")

    with pytest.raises(BadPayload, match="cellar eval package"):
        run_package(str(tmp_path / "export"))


Change = Callable[[Element], Element]


def forged(packaged: Path, path: Path, change: Change) -> str:
    """A package whose elements `change` has changed, sealed as a true one is."""
    opened = Store.open(str(packaged))
    [pinned] = opened.snapshots()
    snapshot = opened.snapshot(pinned.id)
    renamed: dict[str, str] = {}
    elements = []
    for row, payload in sorted(snapshot.stream(), key=lambda found: _order(found[0].name)):
        requires = tuple(renamed.get(version, version) for version in row.requires)
        name = row.name.partition("/")[2]
        made = change(
            Element(row.kind, name, payload, media=row.media, requires=requires, provenance=row.provenance)
        )
        renamed[row.version] = made.version
        elements.append(made)
    other = Store.create(f"file:{path}-store")
    refs = other.publish(elements, message="forged")
    export_snapshot(other, other.pin(refs, message="forged"), path)
    return str(path)


def _order(name: str) -> tuple[int, str]:
    """Requirements before what requires them."""
    kinds = ["tokenizer", "codec", "memory", "core", "evaluation"]
    last = name.rpartition("/")[2]
    return kinds.index(name.partition("/")[0]), {"samples": "0", "tasks": "2"}.get(last, "1") + name


def test_a_changed_loss_is_told_and_where(packaged: Path, tmp_path: Path) -> None:
    def change(element: Element) -> Element:
        if not element.name.endswith("/samples"):
            return element
        samples = load_samples(element.payload)
        samples[0] = replace(samples[0], nll=samples[0].nll + 0.5)
        return replace(element, payload=encode_samples(samples))

    found = run_package(forged(packaged, tmp_path / "forged", change))

    assert not found.identical
    assert found.largest == pytest.approx(0.5)
    assert {name for name, loss in found.conditions.items() if loss.differing} == {"none"}
    assert found.conditions["none"].differing == 1


def _settings(value: object) -> Change:
    def change(element: Element) -> Element:
        if element.kind != "evaluation" or "/" in element.name:
            return element
        summary = json.loads(element.payload) | {"settings": value}
        return replace(element, payload=canonical_json(summary))

    return change


def _without_samples(element: Element) -> Element:
    if not element.name.endswith("/samples"):
        return element
    return replace(element, payload=encode_samples(load_samples(element.payload)[:-1]))


def _no_json(element: Element) -> Element:
    return replace(element, payload=b"[") if element.name == PARAMS.name else element


@pytest.mark.parametrize(
    "change",
    [_settings(None), _settings({"seed": -1}), _settings({"batch_tasks": 10**9}), _without_samples, _no_json],
)
def test_a_forged_package_is_refused(packaged: Path, tmp_path: Path, change: Change) -> None:
    with pytest.raises(BadPayload):
        run_package(forged(packaged, tmp_path / "forged", change))
