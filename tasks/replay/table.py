"""Jobs from a CSV table whose columns the parameters name."""

import csv
from pathlib import Path

from tasks.replay.files import opened
from tasks.replay.jobs import BadJobs, JobGathering, Label
from tasks.replay.params import ColumnParams

_LONGEST_LINE = 1 << 17


def read_table(
    path: Path, name: str, columns: ColumnParams, labels: dict[str, Label], into: JobGathering
) -> None:
    """Add every row of a CSV file, plain or gzip, to a gathering.

    Rows that cannot be jobs are counted there. Raises `BadJobs` when a named column is missing or the text is
    no CSV.
    """
    wanted = {field: column for field, column in columns.model_dump().items() if column}
    number = 1
    with opened(path, name) as reader:
        rows = csv.reader(reader.lines(_LONGEST_LINE), strict=True)
        try:
            head = next(rows, None) or []
            places = {field: _place(head, column, field, name) for field, column in wanted.items()}
            for row in rows:
                number += 1
                if not row:
                    continue
                values = {field: row[at].strip() if at < len(row) else "" for field, at in places.items()}
                conclusion = values.pop("conclusion")
                into.add(values, conclusion or None, labels, place=f"{name} row {number:,}")
        except csv.Error as error:
            raise BadJobs(f"{name} is no CSV after row {number:,} ({error}); repair it") from error


def _place(head: list[str], column: str, field: str, name: str) -> int:
    found = [place for place, title in enumerate(head) if title.strip() == column]
    if len(found) == 1:
        return found[0]
    what = "has no column" if not found else "has twice the column"
    there = ", ".join(title[:40] for title in head[:20]) or "nothing"
    raise BadJobs(f"{name} {what} {column!r} but {there}; set replay.columns.{field}")
