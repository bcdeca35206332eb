"""Skills: programs for a bounded virtual machine, a controller that chooses one, and how results return."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.skills.answer import Answer, answer, read_prompts
    from tasks.skills.compiler import OPERATIONS, Operation, compile_operation
    from tasks.skills.controller import Controller, load_controller
    from tasks.skills.machine import Execution, Step, Trap, execute
    from tasks.skills.operands import Operands, parse_numbers, parse_operands
    from tasks.skills.params import SkillsParams
    from tasks.skills.pipeline import Pipeline, Routed
    from tasks.skills.program import Division, Instruction, Opcode, Program, load_program, parse_program
    from tasks.skills.published import open_program, publish_program, publish_programs
    from tasks.skills.render import Interface, Renderer
    from tasks.skills.samples import SkillSample
    from tasks.skills.step import (
        SkillSet,
        evaluate_skills,
        find_skill_set,
        load_skill_samples,
        open_pipeline,
        open_skill_core,
        train_controller,
        train_core,
        train_skill_tokenizer,
    )
    from tasks.skills.tasks import SkillTask, TaskMaker

__all__ = [
    "OPERATIONS",
    "Answer",
    "Controller",
    "Division",
    "Execution",
    "Instruction",
    "Interface",
    "Opcode",
    "Operands",
    "Operation",
    "Pipeline",
    "Program",
    "Renderer",
    "Routed",
    "SkillSample",
    "SkillSet",
    "SkillTask",
    "SkillsParams",
    "Step",
    "TaskMaker",
    "Trap",
    "answer",
    "compile_operation",
    "evaluate_skills",
    "execute",
    "find_skill_set",
    "load_controller",
    "load_program",
    "load_skill_samples",
    "open_pipeline",
    "open_program",
    "open_skill_core",
    "parse_numbers",
    "parse_operands",
    "parse_program",
    "publish_program",
    "publish_programs",
    "read_prompts",
    "train_controller",
    "train_core",
    "train_skill_tokenizer",
]

export_lazily(__name__)
