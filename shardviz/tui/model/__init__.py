"""A whole model: its parameters as a tree, memory as bars, a change of a split and what moves by it.

editor   the texts of the fields and the changes, with undo; the question that they state
tree     the rows of the parameters, groups open or folded
dialog   the screen
"""
