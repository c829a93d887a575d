"""Compiled programs: their collectives, their text, their passes, and several targets side by side.

collective_rows    collectives as rows of a table
hlo_view           the collectives of a program by source line; those of a failed test
hlo_picture        a program in its order, with what overlaps at the left
program_pages      a program to scroll through, and the details of a line
passes_view        a compilation stage by stage
target_answers     the answers of targets, one after another or in one table
target_status      which targets there are, and the state of those that were asked
"""
