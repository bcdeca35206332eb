"""A computation as a value: what its fingerprint is made of, known before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from store.element import fingerprint


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe with its version (`codec.train/1`), parameters, and input versions in a fixed order."""

    name: str
    params: Mapping[str, Any] = field(hash=False)
    inputs: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """What elements made by it have as `recipe` of their provenance; see `store.fingerprint`."""
        return fingerprint(self.name, params=self.params, inputs=self.inputs)
