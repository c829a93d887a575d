"""The application: a problem is edited on the left, and what follows from it is shown on the right.

app        the application: undo, dialogs, lessons, and which key does what everywhere
registry   all commands, lines of commands.txt: they feed keys, footer, palette, help and the table in docs/
state      the form with undo and the problem that it states, which all parts are given; session: kept on disk
workspace  the problem beside one of the panes; bars: the lines above and below
planning   the plans of what is on screen, and the process that makes those that take long
compiler_queries  the queries to the compilers, and their answers as they arrive
pane       the base of the panes; targets_pane: of those about one of the targets
lines_view a view of many lines; themes: colours
own_keys   keys that a person has chosen, from a file
problem/   the fields: mesh, einsum, sizes, specs
layout_pane  1  which device holds what
plan_pane  2  the steps, and what each target inserted
step/      3  the player
compiler/  4  the targets' programs and passes
time/      5  what runs when, what waits, and the memory
lesson/    a lesson: its words, its questions, its goal, in the places of these
opening/   what `o` opens: files, folders and texts
dialogs/   the windows above all that: help, lists to choose from, a whole model, code, command line, export
"""
