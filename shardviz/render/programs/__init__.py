"""Compiled programs: their collectives, their text, their passes, and several targets side by side.

collective_rows    collectives as rows of a table
cost_lines         collectives by what they cost, and why they are there
program_view       the page of a program; a user's function as targets compile it
hlo_picture        a program in its order, with what overlaps at the left
program_pages      a program to scroll through, and the details of a line
passes_view        a compilation stage by stage
changes_view       the changes from one program to another, and what a test expected
target_answers     the answers of targets, one after another or in one table, and their state
"""
