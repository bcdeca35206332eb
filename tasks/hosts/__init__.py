"""Frozen causal language models that residuals and shadows attach to.

A host is a Hugging Face directory, its identity the manifest of its tensors, configuration and tokenizer.
"""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.hosts.building import end_of_sequence
    from tasks.hosts.conversion import convert_gguf, is_gguf
    from tasks.hosts.digests import read_manifest
    from tasks.hosts.kept import KeptHost, find_host, list_hosts
    from tasks.hosts.manifest import HostManifest
    from tasks.hosts.opening import Host, HostDtype, HostIdentity, HostParts, host_dtype, load_host
    from tasks.hosts.params import HostParams
    from tasks.hosts.step import open_host, prepare_host, publish_host

__all__ = [
    "Host",
    "HostDtype",
    "HostIdentity",
    "HostManifest",
    "HostParams",
    "HostParts",
    "KeptHost",
    "convert_gguf",
    "end_of_sequence",
    "find_host",
    "host_dtype",
    "is_gguf",
    "list_hosts",
    "load_host",
    "open_host",
    "prepare_host",
    "publish_host",
    "read_manifest",
]

export_lazily(__name__)
