"""A host's identity: what it computes, and not how its files are cut or by whom they were written."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tasks.errors import BadHost, BadPayload
from tasks.hosts import HostManifest, read_manifest
from tests.tiny_host import write_tiny_host


def test_equal_hosts_have_equal_manifests_and_a_payload_that_reads_back(folder: Path, tmp_path: Path) -> None:
    manifest = read_manifest(folder)
    again = read_manifest(write_tiny_host(tmp_path / "again"))
    assert manifest == again
    assert manifest.to_bytes() == again.to_bytes()
    assert HostManifest.from_bytes(manifest.to_bytes()) == manifest
    assert manifest.architecture == "LlamaForCausalLM"
    # Two layers of q, k, v, o, gate, up, down and two norms, the embedding, and the last norm.
    assert len(manifest.tensors) == 2 * 9 + 2
    assert manifest.tensors["model.embed_tokens.weight"].shape == (264, 32)
    assert manifest.parameters == sum(tensor.numel for tensor in manifest.tensors.values())
    assert manifest.difference(again) is None


def test_sharding_white_space_and_who_saved_it_do_not_matter(folder: Path) -> None:
    manifest = read_manifest(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    save_file({name: tensors[name] for name in names[:7]}, folder / "model-00002-of-00002.safetensors")
    save_file({name: tensors[name] for name in names[7:]}, folder / "model-00001-of-00002.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config |= {"transformers_version": "99.0", "_name_or_path": "elsewhere", "dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config, indent=7))
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert read_manifest(folder) == manifest


def test_one_changed_bit_is_found_and_named(folder: Path) -> None:
    manifest = read_manifest(folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"].view(torch.int32)[3] ^= 1
    save_file(tensors, folder / "model.safetensors")
    changed = read_manifest(folder)
    assert manifest.difference(changed) == "1 of 20 tensors differ, the first is model.norm.weight"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-5}))
    assert manifest.difference(read_manifest(folder)) == "config.json differs in rms_norm_eps"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("config.json", None, "has no config.json"),
        ("config.json", b"[]", "is no JSON object"),
        ("config.json", b"{}", "names no architecture"),
        ("config.json", b'{"architectures": ["A"], "auto_map": {"A": "code.A"}}', "code of its own"),
        ("config.json", b"[" * 100_000, "cannot be read as JSON"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("tokenizer.json", b"\xff", "cannot be read as JSON"),
        ("model.safetensors", None, "save the model with safe serialization"),
        ("model.safetensors", b"\x80\x02ctorch", "is no safetensors file"),
        ("model.safetensors", (2**62).to_bytes(8, "little") + b"{}", "is no safetensors file"),
        ("model-2.safetensors", "copy", "is in two files"),
    ],
)
def test_a_folder_that_holds_no_host_is_refused(
    folder: Path, name: str, content: bytes | str | None, sentence: str
) -> None:
    path = folder / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes((folder / "model.safetensors").read_bytes() if isinstance(content, str) else content)
    with pytest.raises(BadHost, match=sentence):
        read_manifest(folder)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadHost, match="there is no folder"):
        read_manifest(tmp_path / "nothing")


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b'{"format": 2}', b'{"format": 1, "config": {}, "tokenizer": "", "tensors": {}}', b"\xff"],
)
def test_a_payload_that_is_no_manifest_is_refused(payload: bytes) -> None:
    with pytest.raises(BadPayload, match="not the manifest of a host"):
        HostManifest.from_bytes(payload)
