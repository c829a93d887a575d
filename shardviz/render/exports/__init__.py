"""Exports: one file each, which needs nothing of shardviz to run or to be opened.

subject     what is exported
script      a Python program that simulates the devices, or the same as a notebook for Jupyter and Colab
sections    what pictures and pages show, part by part; the rounds of a collective as frames of one page
svg         a picture
html        a page for a browser
cast        a recording for asciinema
writing     the file itself
"""
