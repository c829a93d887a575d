"""HLO text taken apart: computations, instructions, shapes, sources, and which instruction uses which."""
