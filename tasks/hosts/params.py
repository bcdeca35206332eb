"""Parameters of a host: which frozen language model elements are attached to, and in which numbers."""

from typing import Literal

from pydantic import Field

from tasks.parameters import Parameters

NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
"""Names of hosts, which are names of folders as well."""


class HostParams(Parameters):
    """Which frozen causal language model is meant."""

    name: str = Field(
        default="smollm2",
        pattern=f"^{NAME}$",
        description="The host's name in the store, host/<name>, and its folder below CELLAR_HOSTS.",
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto",
        description="What the host's weights and products are; auto is bfloat16 on a GPU and on a processor "
        "with instructions for it, otherwise float32.",
    )
