"""What the retrieval room computes: every constant of the charts, the dense index and the reranker.

The source text (FEM-ASM, addressing) names four fixed sketches (prefix, sliding window, token bag, n-gram)
and a shared reranker, and fixes no constant of theirs: all defaults here are ours, chosen on 530,000 tokens
of Python documentation with one to two percent of the stored tokens changed.
"""

from typing import Self

from pydantic import Field, model_validator

from tasks.parameters import Parameters


class ChartParams(Parameters):
    """The fixed sketches. Lengths are tokens; a `winnow` of w keeps the smallest of every w consecutive
    hashes.

    The token bag leaves out tokens that occur in more than `bag_common_share` of the elements (never those
    of at most `bag_common_floor` elements); `bag_length_share` is how much an element's number of tokens
    damps its mass.
    """

    prefix_tokens: int = Field(default=12, ge=2, le=64)
    prefix_stride: int = Field(default=64, ge=1)
    window_tokens: int = Field(default=16, ge=2, le=64)
    window_winnow: int = Field(default=8, ge=1)
    ngram_tokens: int = Field(default=4, ge=2, le=64)
    ngram_winnow: int = Field(default=4, ge=1)
    bag_common_share: float = Field(default=0.25, gt=0, le=1)
    bag_common_floor: int = Field(default=64, ge=1)
    bag_length_share: float = Field(default=0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _a_winnow_stays_inside_one_element(self) -> Self:
        for kind in ("window", "ngram"):
            if getattr(self, f"{kind}_winnow") > getattr(self, f"{kind}_tokens"):
                raise ValueError(f"{kind}_winnow must not exceed {kind}_tokens; lower the winnow")
        return self


class SearchParams(Parameters):
    """Bounds on the work of one query; they cut in store order, never at random.

    A cue whose best alignment agrees in less than `confident_agreement` of its tokens also asks the token
    bag and the dense index.
    """

    max_cue_tokens: int = Field(default=64, ge=4, le=512)
    max_postings: int = Field(default=64, ge=1)
    max_alignments: int = Field(default=64, ge=1)
    bag_probes: int = Field(default=24, ge=1)
    bag_elements: int = Field(default=16, ge=1)
    dense_elements: int = Field(default=8, ge=1)
    confident_agreement: float = Field(default=0.75, ge=0, le=1)


class RerankerParams(Parameters):
    """The shared scorer and the cues drawn from train-split elements that it learns on."""

    hidden: int = Field(default=16, ge=1)
    steps: int = Field(default=300, ge=1)
    learning_rate: float = Field(default=0.02, gt=0)
    weight_decay: float = Field(default=1e-3, ge=0)
    cues: int = Field(default=3000, ge=1)
    cue_tokens: tuple[int, ...] = (8, 16, 32)
    continuation_tokens: int = Field(default=8, ge=1)
    corruption: tuple[float, ...] = (0.0, 0.02, 0.1, 0.2, 0.3)
    candidates: int = Field(default=16, ge=2)
    seed: int = 0


class RetrievalParams(Parameters):
    """Everything that decides what an index and its reranker are."""

    charts: ChartParams = ChartParams()
    search: SearchParams = SearchParams()
    reranker: RerankerParams = RerankerParams()
    readout_tile: int = Field(default=16, ge=1, description="blocks decoded at once; fixed, so equal bits")
