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
    number = 1
    with opened(path, name) as reader:
        rows = csv.reader(reader.lines(_LONGEST_LINE), strict=True)
        try:
            places = _places(next(rows, None), columns, name)
            begins = rows.line_num + 1
            for row in rows:
                number, begins = number + 1, rows.line_num + 1
                if not row:
                    continue
                values = {field: row[at].strip() if at < len(row) else "" for field, at in places.items()}
                conclusion = values.pop("conclusion")
                into.add(values, conclusion or None, labels, place=f"{name} row {number:,}")
        except csv.Error as error:
            fault = f"({error})"
            if str(error).startswith(("unexpected end of data", "field larger than")):
                fault = "(a quote that opens there is not closed)"
            raise BadJobs(f"{name} is no CSV from line {begins:,} on {fault}; repair it") from error


def _places(head: list[str] | None, columns: ColumnParams, name: str) -> dict[str, int]:
    """Where each named column stands; raises `BadJobs` where the first row lacks one or has it twice."""
    if head is None:
        raise BadJobs(f"{name} is empty; give a table of CI jobs whose first row names its columns")
    titles = [title.strip() for title in head]
    wanted = {field: column for field, column in columns.model_dump().items() if column}
    absent = {field: column for field, column in wanted.items() if column not in titles}
    twice = {field: column for field, column in wanted.items() if titles.count(column) > 1}
    if odd := absent or twice:
        what = ("has no column" if absent else "has twice the column") + "s" * (len(odd) > 1)
        named = ", ".join(repr(column[:40]) for column in odd.values())
        there = ", ".join(title[:40] for title in titles[:20]) or "nothing"
        sets = ", ".join(f"replay.columns.{field}" for field in odd)
        raise BadJobs(f"{name} {what} {named} but {there}; set {sets}, or give another file")
    return {field: titles.index(column) for field, column in wanted.items()}
