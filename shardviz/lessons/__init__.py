"""The course: one lesson a file, and what reads, computes, compares and keeps them.

NN-name.toml  the lessons, in the order of the course; docs/writing-lessons.md says how to write one
lesson        what a lesson is
table, reading  the text of a file → the lesson, or which key is wrong
course        the lessons in order, read when they are asked for
measures/     what a prediction asks for: its answer is computed, never written down
goal          the sandbox's state against the state that the goal wants
differences/  the first thing that differs, of each kind
attempt       where a learner stands in a lesson
progress      what is solved, kept between sessions
checking      whether a lesson keeps its word
jax_questions  what of it JAX can say too, and whether that is the same
"""
