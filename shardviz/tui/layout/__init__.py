"""The layout screen: who holds what.

pane        the screen: which picture, and the cell under the cursor in words
cells_view  the picture, and the cursor in it
grounds     where the devices stand on the targets, as far as it is known
"""
