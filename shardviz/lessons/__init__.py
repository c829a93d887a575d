"""The course: one lesson a file, and the code that reads, computes, compares and keeps them.

NN-name.toml  the lessons, in the order of the course; docs/writing-lessons.md says how to write one
lesson        a lesson: its predictions and its goal
lesson_file   the text of a file → the lesson, or the key that is wrong
course        the lessons in order, found by number, name or path
compiled/     programs that a compiler made of their problems, about whose times they ask
measures/     the questions of predictions; their answers are computed, never written down
goal          the sandbox against the goal: the first thing that differs
attempt       a learner's attempt at a lesson, at one of its stages
progress      the lessons that are solved, kept between sessions
hand_in       what a learner hands in, and its grades
checking      the errors of a lesson, key by key
verifier      the parts of a lesson that JAX can verify, and its program"""
