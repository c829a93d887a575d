"""A lesson inside the application: its words take the problem's place until the sandbox opens.

controller  which lesson is open, at which stage, and what every command makes of it
view        what each stage puts on screen
widgets     the lesson's line, the goal, the words, the pane that hides an answer, the code
progress    the learner's progress, written after every key that changes something
"""
