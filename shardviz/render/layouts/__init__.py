"""Arrays on a mesh: pictures of who holds what.

cells            the cells of an array, blocks or devices, and their labels
array_grid       one array as grids of cells, line by line
layout_canvas    arrays side by side: scrolled in a window, printed whole, with a cursor
layout_view      one array as a page, a cell in words
"""
