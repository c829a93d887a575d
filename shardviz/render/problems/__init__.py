"""A problem as it is edited.

fields_picture    its fields as rows of cells for a cursor
headline          all of it on one line
"""
