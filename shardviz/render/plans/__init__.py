"""A question, its plan, and rankings of plans.

plan_arrays     the arrays of a plan, every sharding decided, and numbers for their blocks
plan_view       an explanation: pictures, steps, reasons; one step may be chosen
ranking_view    every sharding worth considering, a line each
"""
