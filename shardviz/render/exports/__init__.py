"""What people take with them: one file each, which needs nothing of shardviz to run or to be opened.

subject            what is exported
script             a Python program that simulates the devices
notebook           the same program, cell by cell, for Jupyter and Colab
sections           what pictures and pages show, part by part
film               the rounds of a collective as frames of one page
svg                a picture
html               a page for a browser: page_styles, page_player
cast               a recording for asciinema
writing            the file itself
"""
