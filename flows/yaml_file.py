"""Reading a YAML file that a user wrote; what is wrong with it is one sentence."""

from pathlib import Path
from typing import Any

import yaml

from store.errors import InputError


def read_yaml(path: Path, error: type[InputError], *, remedy: str) -> Any:
    """The tree in a YAML file, None where it is empty.

    Raises:
        InputError: as `error`: the file is missing (then `remedy` says what to do), no text, or no YAML.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path} does not exist; {remedy}") from None
    except IsADirectoryError:
        raise error(f"{path} is a folder; {remedy}") from None
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{path} cannot be read as UTF-8 text; check the file") from cause
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise error(f"{path} is not valid YAML{line}; correct it") from cause
