"""Plans: which steps of a flow are done, which would run and why, and about what that would take."""

from flows.plan.chain import plan_chain
from flows.plan.steps import Step, plan_lines, until
from flows.plan.update import plan_update

__all__ = ["Step", "plan_chain", "plan_lines", "plan_update", "until"]
