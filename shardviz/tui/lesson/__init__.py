"""A lesson inside the application: its words take the problem's place until the sandbox opens.

classroom  which lesson is open, at which stage, and what every key makes of it
mode       what stands where on the application's screen at each stage
widgets    the lesson's line, the goal, the words, the curtain before an answer, the code
opening    how a lesson is opened, at the stage where it was left
record     the learner's progress, written after every key that changes something
course     the list of lessons
"""
