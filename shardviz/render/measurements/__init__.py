"""Measurements of devices: rows in the columns of nccl-tests, charts, and the lines through them."""
