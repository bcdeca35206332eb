"""Residual assembly: elements attached to the nodes of a causal core by weights, boundaries and adapters."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.assembly.accounts import CoreAccounts, core_accounts
    from tasks.assembly.agreement import agreement_weight, chance_agreement
    from tasks.assembly.attachment import (
        MEMORY,
        SKILL_CHARACTERS,
        SKILL_RESULT,
        SKILL_TOKENS,
        TEXT,
        Attachment,
        aligned,
    )
    from tasks.assembly.batches import AttachmentRows, Batch, LanguageStream
    from tasks.assembly.inputs import (
        check_train_split,
        language_documents,
        open_tables,
        worker_documents,
    )
    from tasks.assembly.model import CoreState, ResidualCore, load_core
    from tasks.assembly.params import (
        AssemblyParams,
        CoreArchitecture,
        EvidenceMix,
        ReadingArchitecture,
        ReadingEvaluationParams,
        ReadingParams,
    )
    from tasks.assembly.reading import CrossReading, OpenElement, load_reading
    from tasks.assembly.reading_training import (
        ReadingFigures,
        ReadingRows,
        open_memory,
        train_cross_reading,
    )
    from tasks.assembly.readout import CellTable, TokenTable
    from tasks.assembly.recipes import core_recipe
    from tasks.assembly.residual import Field, energy, external_residual, gather_field, substep
    from tasks.assembly.selection import select_elements
    from tasks.assembly.step import open_core, open_reading, train_core, train_reading
    from tasks.assembly.train import (
        CoreTrainer,
        CurvePoint,
        TrainingData,
        new_core,
        target_nll,
        train,
    )
    from tasks.assembly.training import CoreTraining
    from tasks.processor import product_dtype

__all__ = [
    "MEMORY",
    "SKILL_CHARACTERS",
    "SKILL_RESULT",
    "SKILL_TOKENS",
    "TEXT",
    "AssemblyParams",
    "Attachment",
    "AttachmentRows",
    "Batch",
    "CellTable",
    "CoreAccounts",
    "CoreArchitecture",
    "CoreState",
    "CoreTrainer",
    "CoreTraining",
    "CrossReading",
    "CurvePoint",
    "EvidenceMix",
    "Field",
    "LanguageStream",
    "OpenElement",
    "ReadingArchitecture",
    "ReadingEvaluationParams",
    "ReadingFigures",
    "ReadingParams",
    "ReadingRows",
    "ResidualCore",
    "TokenTable",
    "TrainingData",
    "agreement_weight",
    "aligned",
    "chance_agreement",
    "check_train_split",
    "core_accounts",
    "core_recipe",
    "energy",
    "external_residual",
    "gather_field",
    "language_documents",
    "load_core",
    "load_reading",
    "new_core",
    "open_core",
    "open_memory",
    "open_reading",
    "open_tables",
    "product_dtype",
    "select_elements",
    "substep",
    "target_nll",
    "train",
    "train_core",
    "train_cross_reading",
    "train_reading",
    "worker_documents",
]

export_lazily(__name__)
