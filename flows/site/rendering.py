"""The templates of a site, and how times, sizes and digests are printed in them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from flows import formatting
from flows.pages import environment
from flows.site.folder import SiteFolder

if TYPE_CHECKING:
    from markupsafe import Markup

SECTIONS = (
    ("index.html", "Overview"),
    ("snapshots.html", "Snapshots"),
    ("evaluations.html", "Evaluations"),
    ("elements.html", "Elements"),
    ("runs.html", "Runs"),
)


class Pages:
    """Renders pages into a site's folder; `facts` are what every page may print."""

    def __init__(self, folder: SiteFolder, facts: Mapping[str, Any]) -> None:
        self._folder = folder
        self._facts = dict(facts)
        filters = {"moment": moment, "short": short, "signed": signed, "prose": prose}
        self._environment = environment("flows.site", filters)
        self._environment.globals["sections"] = SECTIONS
        self._environment.globals["counted"] = formatting.counted

    def write(self, template: str, path: str, *, section: str, title: str, **values: Any) -> None:
        """Render `template` to `path`; `section` is the address of the part of the site it belongs to."""
        root = "../" * (len(PurePosixPath(path).parts) - 1)
        made = self._environment.get_template(template).render(
            self._facts, root=root, section=section, title=title, **values
        )
        self._folder.write(path, made)

    def write_assets(self) -> None:
        """Write style sheet, script and icon."""
        theme = files("flows").joinpath("templates/theme.css").read_text(encoding="utf-8")
        ours = files("flows.site").joinpath("templates")
        style = theme + ours.joinpath("site.css").read_text(encoding="utf-8")
        self._folder.write("site.css", style)
        for name in ("site.js", "icon.svg"):
            self._folder.write(name, ours.joinpath(name).read_text(encoding="utf-8"))


def moment(time: object) -> str:
    """A time of the log for people: to the minute, in UTC; what is no time is printed as it is."""
    text = str(time or "")
    try:
        read = datetime.fromisoformat(text)
        if read.tzinfo is not None:
            read = read.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter for times that have no place in UTC's years 1 to 9999
        return text or formatting.MISSING
    return f"{read:%Y-%m-%d %H:%M}"


def short(digest: object) -> str:
    """The first digits of a digest, as every listing shows them."""
    return str(digest)[:12]


def signed(value: int) -> str:
    """A difference in bytes with its sign."""
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    return f"{sign}{formatting.size(abs(value))}"


def prose(text: object) -> "Markup":
    """A longer text as markup: its lines stay lines, other invisible characters are shown."""
    from markupsafe import Markup, escape

    return Markup(escape(formatting.printable(str(text))))  # noqa: S704 - escaped
