"""A collective round by round: buffers, sends, costs and verdicts."""
