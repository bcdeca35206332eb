"""Installed documentation is read as data, under the names people know it by."""

import sys
from pathlib import Path

import pytest

from tasks.corpus.document import Document
from tasks.corpus.installed import list_sources, read_installed
from tasks.corpus.params import CorpusParams
from tasks.corpus.sources import open_source

LONG = "Words that make a document. " * 40


@pytest.fixture(scope="module")
def default_documents() -> dict[str, str]:
    items = open_source(CorpusParams()).items()
    return {item.name: item.text for item in items if isinstance(item, Document)}


def test_the_default_corpus_is_large_enough_for_the_whole_chain(default_documents: dict[str, str]) -> None:
    assert len(default_documents) >= 1400
    assert 3_000_000 < sum(map(len, default_documents.values())) < 4_000_000
    assert min(map(len, default_documents.values())) >= 800


@pytest.mark.parametrize(
    "name",
    [
        "numpy.linalg.svd",
        "numpy.sort",
        "numpy.ndarray.partition",
        "torch.nn.Transformer",
        "torch.nn.functional.pad",
        "argparse",
        "python.topics.assignment",
        "matplotlib.axes.Axes.imshow",
    ],
)
def test_documents_have_the_names_people_look_for(default_documents: dict[str, str], name: str) -> None:
    assert name in default_documents


def test_no_part_of_a_name_is_private(default_documents: dict[str, str]) -> None:
    parts = {part for name in default_documents for part in name.split(".")}
    assert not [part for part in parts if part.startswith("_") and not part.endswith("__")]


def test_excluded_names_and_all_below_them_are_left_out(default_documents: dict[str, str]) -> None:
    assert not [name for name in default_documents if name.startswith("numpy.polynomial.hermite")]
    assert any(name.startswith("numpy.polynomial.chebyshev.") for name in default_documents)


def make_package(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def documents_of(package: str) -> dict[str, str]:
    sources, _ = list_sources([package])
    items = read_installed(sources, exclude=(), shortest=800)
    return {item.name: item.source for item in items if isinstance(item, Document)}


def test_a_package_is_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_package(tmp_path, {"cellar_trap/__init__.py": f'"""{LONG}"""\nraise SystemExit("imported")\n'})
    monkeypatch.syspath_prepend(tmp_path)

    assert list(documents_of("cellar_trap")) == ["cellar_trap"]
    assert "cellar_trap" not in sys.modules


def test_what_init_files_publish_gives_an_object_its_shortest_public_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = f'"""{LONG}"""'
    make_package(
        tmp_path,
        {
            "cellar_shop/__init__.py": "from .shelf import *\nfrom ._back.room import Box as Crate\n",
            "cellar_shop/shelf/__init__.py": "from ._inner import jar\n__all__ = ['jar']\n",
            "cellar_shop/shelf/_inner.py": f"def jar():\n    {doc}\n\ndef _hidden():\n    {doc}\n",
            "cellar_shop/_back/room.py": f"class Box:\n    def open(self):\n        {doc}\n",
            "cellar_shop/_back/__init__.py": "",
            "cellar_shop/_loose.py": f"def cork():\n    {doc}\n",
        },
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert documents_of("cellar_shop") == {
        "cellar_shop.Crate.open": "cellar_shop/_back/room.py",
        "cellar_shop.cork": "cellar_shop/_loose.py",
        "cellar_shop.jar": "cellar_shop/shelf/_inner.py",
    }


def test_texts_attached_by_calls_belong_to_the_object_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        f'add_newdoc("cellar_calls.core", "array", """{LONG}""")\n'
        f'add_newdoc("cellar_calls.core", "array", ("sort", """{LONG}"""))\n'
        f'add_docstr(cellar_calls.Thing.run, "a" + """{LONG}""")\n'
        f'norm = _add_docstr(_C.norm, """{LONG}""")\n'
        f'add_docstr(cellar_calls.skipped, """{LONG}""".format(a=1))\n'
    )
    make_package(tmp_path, {"cellar_calls/__init__.py": "", "cellar_calls/linalg.py": source})
    monkeypatch.syspath_prepend(tmp_path)

    assert sorted(documents_of("cellar_calls")) == [
        "cellar_calls.Thing.run",
        "cellar_calls.core.array",
        "cellar_calls.core.array.sort",
        "cellar_calls.linalg.norm",
    ]


def test_a_package_that_is_absent_or_broken_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_package(tmp_path, {"cellar_broken/__init__.py": "def (:\n", "cellar_broken/ok.py": f'"""{LONG}"""'})
    monkeypatch.syspath_prepend(tmp_path)
    params = CorpusParams(packages=("cellar_absent", "cellar_broken"))

    items = [(item.name, getattr(item, "reason", None)) for item in open_source(params).items()]

    assert items == [
        ("cellar_absent", "not installed"),
        ("cellar_broken/__init__.py", "not parsable as Python"),
        ("cellar_broken.ok", None),
    ]
