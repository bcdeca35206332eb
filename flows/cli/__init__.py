"""The command line `cellar`: one module per noun, one function per verb.

Nothing heavy is imported before a command runs, so that help answers at once.
"""

from flows.cli.app import main

__all__ = ["main"]
