"""A lineage as an indented tree for people: what comes in thousands is counted, parameters are cut."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import counted, flatten

_STEP = "  "
_MANY = 6
"""Entries of one kind that are shown one by one."""
_LONGEST = 300
"""Characters of parameters and settings that are shown."""


@dataclass
class _Told:
    """How the entry above was made and with which settings, which need not be said again."""

    how: str = ""
    settings: str = ""


def tree_lines(lineage: Mapping[str, Any]) -> Iterator[str]:
    """The lines of an element's or a snapshot's lineage."""
    told = _Told()
    if "snapshot" in lineage:
        yield from _snapshot(lineage, told)
    else:
        yield str(lineage["element"])
        yield from _indented(_described(lineage, told))
    if "document" in lineage:
        yield from _indented(_document(lineage["document"]))
    if "made_from" in lineage:
        yield from _indented(_section("made from", _sources(lineage, told)))
    if "made_with" in lineage:
        yield from _indented(_section("made with it", _uses(lineage["made_with"])))


def _snapshot(lineage: Mapping[str, Any], told: _Told) -> Iterator[str]:
    yield f"snapshot {lineage['snapshot']}"
    names = ", ".join(lineage["names"]) or "no name"
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(lineage["kinds"].items()))
    yield f"{_STEP}{names}; {counted(lineage['elements'], 'element')}, {lineage['bytes']:,} bytes: {kinds}"
    for pin in lineage["pinned"]:
        yield from _indented(_commit(pin, "pinned", told))


def _described(entry: Mapping[str, Any], told: _Told) -> Iterator[str]:
    yield from _commit(entry["made"], "made", told)
    if entry["params"]:
        yield f"params    {_values(entry['params'])}"


def _commit(made: Mapping[str, Any], verb: str, told: _Told) -> Iterator[str]:
    by = f" by {made['by']}" if made["by"] else ""
    yield f"{verb:<9} {made['time']}{by} in commit {made['commit']:,}: {' '.join(made['message'].split())}"
    run = made["run"]
    flow_run = f", run {run['flow_run']}" if run.get("flow_run") else ""
    how = [f"flow {run['flow']}{flow_run}"] if run.get("flow") else []
    how += [f"cellar {run['command']}"] if run.get("command") else []
    if made["code"].get("version"):
        how.append(f"code {made['code']['version']} {made['code'].get('revision', '')}".rstrip())
    manner, settings = "; ".join(how), _values(run["settings"]) if run.get("settings") else ""
    if manner and manner != told.how:
        yield f"{'':<9} {manner}"
    if settings and settings != told.settings:
        yield f"settings  {settings}"
    told.how, told.settings = manner, settings


def _document(document: Mapping[str, Any]) -> Iterator[str]:
    read = f", read from {document['source']}" if document["source"] else ""
    yield f"document  {document['digest']} {document['name']}{read}"
    if "shard" in document:
        yield f"{'':<9} in {document['shard']}"
        yield from (f"{'':<9} of {corpus}" for corpus in document["corpora"])


def _sources(lineage: Mapping[str, Any], told: _Told) -> Iterator[str]:
    """Inputs by their roles; those that come in numbers, as shards, by the first ones."""
    if "memories" in lineage:
        documents = len({str(entry["document"]) for entry in lineage["memories"]})
        memories = counted(len(lineage["memories"]), "element")
        yield (
            f"memory {memories} of {counted(documents, 'document')}, each with a lineage of its own "
            "(--json lists them)"
        )
    for corpus in lineage.get("corpora", ()):
        yield f"corpus {corpus['corpus']}, {_documents(corpus['documents'])}"
        yield from _indented(_described(corpus, told))
    by_role: dict[str, list[Mapping[str, Any]]] = {}
    for entry in lineage["made_from"]:
        by_role.setdefault(entry["role"], []).append(entry)
    for role, entries in by_role.items():
        many = len(entries) > _MANY
        for entry in entries[:1] if many else entries:
            yield from _source(role, entry, told)
        if many:
            yield f"{role} ... {len(entries) - 1:,} more (--json lists them)"


def _source(role: str, entry: Mapping[str, Any], told: _Told) -> Iterator[str]:
    if "snapshot" in entry:
        yield f"{role} {entry['snapshot']}"
        return
    yield f"{role} {entry['element']}{' (described above)' if entry.get('above') else ''}"
    if not entry.get("above"):
        yield from _indented(_described(entry, told))
        if entry.get("made_from"):
            yield from _indented(_section("made from", _sources(entry, told)))


def _uses(used: Mapping[str, Any]) -> Iterator[str]:
    for level, refs in enumerate(used.get("elements", ())):
        yield from _elements(refs, "" if level == 0 else f" ({level + 1} steps away)")
    for entry in _newest(used.get("snapshots", ())):
        names = f" ({', '.join(entry['names'])})" if entry["names"] else ""
        yield f"snapshot {entry['snapshot']}{names}, {entry['time']}"
    for entry in _newest(used.get("evaluations", ())):
        yield f"{entry['evaluation']}, {entry['time']}"
    for entry in _newest(used.get("heads", ())):
        until = f"until {entry['until']}" if entry["until"] else "and still does"
        note = [entry.get("action"), f"by {entry['by']}" if entry.get("by") else "", entry.get("why")]
        said = f": {' '.join(', '.join(filter(None, note)).split())}" if any(note) else ""
        yield f"head {entry['head']} pointed here from {entry['since']} {until}{said}"


def _elements(refs: Sequence[str], where: str) -> Iterator[str]:
    kinds = Counter(ref.partition("/")[0] for ref in refs)
    for kind, count in sorted(kinds.items()):
        mine = [ref for ref in refs if ref.startswith(f"{kind}/")]
        yield from (f"{ref}{where}" for ref in (mine if count <= _MANY else mine[:1]))
        if count > _MANY:
            yield f"{kind} ... {count - 1:,} more{where} (--json lists them)"


def _newest(entries: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The newest entries; all of them are in the JSON."""
    yield from entries[-_MANY:]


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    found = list(lines)
    yield title if found else f"{title}: nothing that is recorded"
    yield from _indented(iter(found))


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (_STEP + line for line in lines)


def _documents(amount: object) -> str:
    """How many documents, as recorded."""
    return counted(amount, "document") if isinstance(amount, int) else f"{_values(amount)} documents"


def _values(values: object) -> str:
    """Names with their values; what is recorded otherwise than by name as it is."""
    if isinstance(values, Mapping):
        text = ", ".join(f"{name} {value}" for name, value in flatten(values))
    else:
        text = values if isinstance(values, str) else json.dumps(values, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... (--json shows all)"
