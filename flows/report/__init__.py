"""The HTML report of an evaluation, its charts, and the summary that it shows."""
