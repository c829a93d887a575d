"""A collective stepped through: from a question, or a step of a plan, to all that its views show."""
