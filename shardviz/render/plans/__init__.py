"""A question, its plan, and rankings of plans."""
