"""Whole models: their parameters, the memory of a device, and the collectives of a step."""
