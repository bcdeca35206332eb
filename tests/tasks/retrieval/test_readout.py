"""The readout is what the memories decode to, whatever their order, and its audit notices every change."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.codec import Codec, CodecArchitecture, freeze
from tasks.errors import BadPayload
from tasks.retrieval import DecodedMemory, MemoryRecord, Readout, audit, decode
from tests.tasks.retrieval.conftest import PARAMS


def test_the_readout_holds_what_each_memory_decodes_to(
    records: list[MemoryRecord], memories: list[DecodedMemory], ids: dict[str, np.ndarray]
) -> None:
    readout = Readout.of(memories)
    assert readout.names == tuple(sorted(record.name for record in records))
    for record in records:
        tokens = readout.tokens(readout.row_of[record.name])
        assert len(tokens) == record.length
        assert np.mean(tokens == ids[record.name]) > 0.95


def test_a_memory_decodes_alike_beside_any_neighbours(
    records: list[MemoryRecord], memories: list[DecodedMemory], codec: Codec
) -> None:
    together = {memory.name: memory for memory in memories}
    for some in (records[7:8], records[3:20][::-1]):
        for memory in decode(codec, some, PARAMS.readout_tile):
            assert memory.tokens_L.tolist() == together[memory.name].tokens_L.tolist()
            assert memory.key_C.tobytes() == together[memory.name].key_C.tobytes()


@pytest.mark.parametrize("spans", [(), (4, 16)])
def test_the_logits_of_a_cell_are_the_same_bits_at_any_place_of_a_tile(spans: tuple[int, ...]) -> None:
    """So what a memory decodes to can be taken over from a readout in which it had other neighbours."""
    architecture = CodecArchitecture(parent_spans=spans)
    codec = freeze(Codec(architecture, 512, torch.Generator().manual_seed(1)))
    draw = torch.Generator().manual_seed(2)
    tile = PARAMS.readout_tile
    with torch.no_grad():
        for weight in codec.parameters():
            weight.add_(0.02 * torch.randn(weight.shape, generator=draw))
    cell_C = torch.randn(architecture.cell_width, generator=draw)
    parents_PC = torch.randn(len(spans), architecture.cell_width, generator=draw)
    found = set()
    for place in (*range(tile), 0):
        cells_BC = torch.randn(tile, architecture.cell_width, generator=draw)
        parents_BPC = torch.randn(tile, len(spans), architecture.cell_width, generator=draw)
        cells_BC[place], parents_BPC[place] = cell_C, parents_PC
        logits_BTV = codec.logits(cells_BC, parents_BPC if spans else None)
        found.add(logits_BTV[place].numpy().tobytes())
    assert len(found) == 1


def test_an_empty_memory_and_one_longer_than_a_tile_decode(codec: Codec, records: list[MemoryRecord]) -> None:
    empty = replace(records[0], name="memory/empty", cells_NC=records[0].cells_NC[:0], length=0)
    decoded = list(decode(codec, [empty, records[0], empty], tile=3))
    assert [len(memory.tokens_L) for memory in decoded] == [0, records[0].length, 0]


def test_equal_memories_in_any_order_give_equal_bytes(memories: list[DecodedMemory]) -> None:
    payload = Readout.of(memories).to_bytes()
    assert Readout.of(memories[::-1]).to_bytes() == payload
    assert Readout.from_bytes(payload).to_bytes() == payload


def test_a_readout_cut_short_is_refused(memories: list[DecodedMemory]) -> None:
    with pytest.raises(BadPayload):
        Readout.from_bytes(Readout.of(memories).to_bytes()[:-10])


def test_an_audit_counts_and_passes_an_intact_readout(memories: list[DecodedMemory]) -> None:
    readout = Readout.of(memories)
    report = audit(readout, memories)
    assert report.passed
    assert (report.elements, report.tokens) == (len(memories), sum(len(m.tokens_L) for m in memories))


def test_an_audit_names_damaged_changed_and_missing_elements(memories: list[DecodedMemory]) -> None:
    tokens = np.concatenate([memory.tokens_L for memory in memories])
    readout = Readout.of(memories)
    tokens[int(readout.start_E1[4])] ^= 1
    other = replace(memories[6], tokens_L=memories[6].tokens_L[::-1])
    newer = replace(memories[8], version="f" * 64)
    stranger = replace(memories[0], name="memory/stranger")
    again = [*memories[1:6], other, memories[7], newer, *memories[9:], stranger]
    report = audit(replace(readout, tokens_N=tokens), again)
    assert not report.passed
    assert report.damaged == (memories[4].name,)
    assert report.changed == tuple(sorted([other.name, newer.name]))
    assert report.missing == tuple(sorted([memories[0].name, "memory/stranger"]))
