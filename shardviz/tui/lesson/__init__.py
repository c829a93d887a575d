"""A lesson inside the application: its words take the problem's place until the sandbox opens.

controller  which lesson is open, at which stage, and what every command makes of it
view        the widgets of a lesson, and what each stage puts on screen
written     what the learner writes, checked beside the screen
progress    the learner's progress, written after every key that changes something
"""
