"""Moving a head only if figures of an evaluation meet what is required."""
