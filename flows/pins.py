"""Pin files: what a stage published, in a few lines of JSON that git and DVC can track.

A pin holds references and figures that are functions of the inputs: no time, no address of the store. Equal
runs write equal bytes, so a pin that did not change means that nothing downstream has to run.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from flows.errors import PinError, SettingsError
from flows.settings import make_folder
from store import Ref
from store.paths import existing_file

PINS = "CELLAR_PINS"
Stage = Literal["corpus", "tokenizer", "codec", "memory", "indexes", "snapshot", "core", "evaluation"]

_REMEDY = "put a pin file there, or none"

# Which command writes the pin of a stage: named when the pin is missing.
COMMANDS: dict[Stage, str] = {
    "corpus": "cellar corpus build",
    "tokenizer": "cellar corpus tokenizer",
    "codec": "cellar codec train",
    "memory": "cellar memory build",
    "indexes": "cellar index build",
    "snapshot": "cellar snapshot pin",
    "core": "cellar core train",
    "evaluation": "cellar eval run",
}


class Pin(BaseModel):
    """The outcome of one stage.

    refs: the elements it published or found, as `kind/name@version`, in a fixed order.
    snapshot: the id of the snapshot it pinned, where it pinned one.
    figures: counts and measurements that follow from the inputs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: Stage
    refs: tuple[str, ...] = ()
    snapshot: str | None = None
    figures: dict[str, Any] = {}

    def references(self, kind: str | None = None) -> list[Ref]:
        """The published elements, all or those of one kind."""
        refs = [Ref.parse(text) for text in self.refs]
        return [ref for ref in refs if kind is None or ref.name.startswith(f"{kind}/")]

    def one(self, kind: str) -> Ref:
        """The only element of a kind.

        Raises:
            PinError: there is none, or more than one.
        """
        found = self.references(kind)
        if len(found) != 1:
            raise PinError(
                f"the pin of stage {self.stage!r} names {len(found)} elements of kind {kind!r}, not one"
            )
        return found[0]


def write_pin(folder: Path, pin: Pin) -> Path:
    """Write `<folder>/<stage>.json` and return its path; the same pin gives the same bytes.

    Raises:
        SettingsError: no folder can be made there.
    """
    path = make_folder(folder, PINS) / f"{pin.stage}.json"
    path.write_text(
        json.dumps(pin.model_dump(mode="json"), indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    return path


def read_pin(folder: Path, stage: Stage) -> Pin:
    """Read the pin of a stage.

    Raises:
        PinError: there is none yet (the message names the command that writes it), or it is damaged.
        SettingsError: the folder is a file.
    """
    path = folder / f"{stage}.json"
    _check_folder(folder)
    try:
        if not path.exists():
            raise PinError(f"{path} is missing: run `{COMMANDS[stage]}` first")
        pin = Pin.model_validate_json(existing_file(path, PinError, remedy=_REMEDY).read_bytes())
    except OSError as error:
        raise PinError(f"{path} cannot be read ({error.strerror}); {_REMEDY}") from error
    except ValidationError as error:
        raise PinError(f"{path} is not a pin file: {error.errors()[0]['msg']}") from error
    if pin.stage != stage:
        raise PinError(f"{path} is the pin of stage {pin.stage!r}, not of {stage!r}")
    return pin


def read_pins(folder: Path) -> dict[Stage, Pin]:
    """Read the pins that are there, in the order of the stages.

    Raises:
        PinError: there is none, or one is damaged.
        SettingsError: the folder is a file.
    """
    _check_folder(folder)
    pins = {stage: read_pin(folder, stage) for stage in COMMANDS if (folder / f"{stage}.json").exists()}
    if not pins:
        raise PinError(f"no pin file is in {folder}; run `{COMMANDS['corpus']}` or `cellar demo` first")
    return pins


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{PINS} is {str(folder)!r}, which is a file; name a folder")
