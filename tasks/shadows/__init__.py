"""Shadows: additive matrices on some blocks of a frozen host that a text is written into (ANNEAL)."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.shadows.attachment import Attachment, attached
    from tasks.shadows.blocks import chosen_layers, default_layers, down_projections
    from tasks.shadows.context import check_length
    from tasks.shadows.documents import digest_of, read_documents
    from tasks.shadows.foundation import foundation
    from tasks.shadows.kept import (
        KeptStack,
        Stack,
        attach_shadows,
        detach_shadows,
        is_stack,
        load_stack,
        open_stack,
        stacks,
    )
    from tasks.shadows.learned import learned_tokens
    from tasks.shadows.merging import merge
    from tasks.shadows.named import KIND, find_shadow, stack_refs
    from tasks.shadows.opening import open_shadow
    from tasks.shadows.params import MOST_ALPHA, WRITTEN, HeldParams, ShadowParams, TextSource, unwritten
    from tasks.shadows.shadow import Shadow, load_shadow, new_shadow
    from tasks.shadows.stack import standing_on
    from tasks.shadows.step import (
        find_written,
        merge_shadows,
        read_domain,
        shadow_element,
        write_domain,
        writing_recipe,
    )
    from tasks.shadows.text import Domain, part
    from tasks.shadows.together import check_different, check_written_on, host_of
    from tasks.shadows.writing import chunks_kept, chunks_of, mean_loss, steps_kept, write_shadow

__all__ = [
    "KIND",
    "MOST_ALPHA",
    "WRITTEN",
    "Attachment",
    "Domain",
    "HeldParams",
    "KeptStack",
    "Shadow",
    "ShadowParams",
    "Stack",
    "TextSource",
    "attach_shadows",
    "attached",
    "check_different",
    "check_length",
    "check_written_on",
    "chosen_layers",
    "chunks_kept",
    "chunks_of",
    "default_layers",
    "detach_shadows",
    "digest_of",
    "down_projections",
    "find_shadow",
    "find_written",
    "foundation",
    "host_of",
    "is_stack",
    "learned_tokens",
    "load_shadow",
    "load_stack",
    "mean_loss",
    "merge",
    "merge_shadows",
    "new_shadow",
    "open_shadow",
    "open_stack",
    "part",
    "read_documents",
    "read_domain",
    "shadow_element",
    "stack_refs",
    "stacks",
    "standing_on",
    "steps_kept",
    "unwritten",
    "write_domain",
    "write_shadow",
    "writing_recipe",
]

export_lazily(__name__)
