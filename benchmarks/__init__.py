"""Measured comparisons with peers on the machine at hand; see `docs/results.md` for what they found."""
