"""A collective round by round: buffers, sends, costs and verdicts.

pieces            names, colours, numbers and labels of chunks; what every device holds in a frame
buffer_table      that as a table on a page
device_map        places for devices, so that neighbours stand beside one another
round_traffic     what moves in a round over every link, and in words
device_picture    devices as boxes joined by their links
matmul_picture    which block of a matmul is multiplied while a collective moves them
step_notes        headline, marks, verdict; rounds, bytes and times, and all algorithms compared
array_lines       an array's numbers, and those of every device beside one another
plan_steps        a plan: what every device holds before and after each step
step_view         the page that is printed, with whole shards of numbers
player            the pages that are played
"""
