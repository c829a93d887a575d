"""The application: a problem is edited on the left, and what follows from it is seen on the right.

app        the application: who is on screen, undo, and which key does what everywhere
registry   all commands: they feed keys, footer, palette, help and the table in docs/
problem/   the fields: mesh, einsum, sizes, specs
layout/    1  who holds what
plan/      2  the steps, and what each target inserted
step/      3  the player
compiler/  4  the targets' programs and passes
lesson/    a lesson: its words, its questions, its goal, in the places of these
answers/   the questions to the compilers, and their answers as they arrive
dialogs/   what opens above all that: help, examples, code, export
"""
