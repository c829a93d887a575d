"""Whole models: parameters and rules become specs, memory and the collectives of a step; no weights are
read."""
