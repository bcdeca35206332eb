"""Plans: which steps of a flow are done, which would run and why, and about what that would take."""

from flows.plan.anneal import plan_cumulation, plan_shadow
from flows.plan.asking import plan_composition, plan_facts
from flows.plan.chain import plan_chain
from flows.plan.larc import plan_replay, plan_study
from flows.plan.steps import Step, plan_lines, until
from flows.plan.update import plan_update

__all__ = [
    "Step",
    "plan_chain",
    "plan_composition",
    "plan_cumulation",
    "plan_facts",
    "plan_lines",
    "plan_replay",
    "plan_shadow",
    "plan_study",
    "plan_update",
    "until",
]
