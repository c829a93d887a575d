"""The application: a problem is edited on the left, and what follows from it is shown on the right.

app        the application: the windows above its screen, and its lessons
main_screen  the problem beside one of the screens: what changes is drawn, and each key does what it names
resilient_app  an application that outlives a handler that fails
registry   all commands, lines of commands.txt: they feed keys, footer, palette, help and the table in docs/,
           where a person's own file has no other keys for them
state      the form with undo and the problem that it states, which all parts are given
kept       the session and the learner's progress, on disk
workspace  the problem beside one of the panes; bars: the lines above and below
planning   the plans of what is on screen, and the process that makes those that take long
compiler_queries  the queries to the compilers, and their answers as they arrive
pane       the base of the panes; targets_pane: of those about one of the targets
lines_view a view of many lines; themes: colours
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
