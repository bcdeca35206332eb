"""Parameters of the leakage audit."""

from pydantic import Field

from tasks.parameters import Parameters

LONGEST_SHINGLE = 4
"""Tokens of the longest shingle that is one 64-bit number."""


class AuditParams(Parameters):
    """What counts as shared text and as a near-duplicate (the numbers are ours, but for the 13)."""

    name: str = Field(
        default="audit",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="Names evaluation/<name> and the tables below it.",
    )
    ngram_tokens: int = Field(default=13, ge=1, le=64, description="Tokens of a run that must not be shared.")
    shingle_tokens: int = Field(
        default=4,
        ge=1,
        le=LONGEST_SHINGLE,
        description="Tokens of a shingle; four ids of sixteen bits fill a number exactly.",
    )
    jaccard: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Documents are near-duplicates from this share of common shingles on.",
    )
    bands: int = Field(default=40, ge=1, le=512, description="Bands of a MinHash signature.")
    band_rows: int = Field(
        default=3, ge=1, le=32, description="Permutations of a band; one band in common makes a candidate."
    )
    bucket_window: int = Field(
        default=64,
        ge=1,
        description="Neighbours, by name, that a document is compared with in a bucket of a band.",
    )
    seed: int = Field(default=13, ge=0, description="Seed of the permutations.")
