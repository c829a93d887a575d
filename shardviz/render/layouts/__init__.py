"""Arrays on a mesh: pictures of who holds what.

cells            the cells of an array, blocks or devices, and their labels
array_grid       one array as grids of cells, line by line
layout_canvas    arrays side by side: scrolled in a window, printed whole, with a cursor
cell_details     one cell in words
jax_style        the picture that JAX itself prints
"""
