"""Plans and programs on a machine: what runs when, what waits, and the memory that is live.

window         a stretch of the drawn clock, zoomed and panned, with ticks at round numbers
timeline_rows  the operations of each lane in rows, prepared once for pictures of any stretch
gantt          the chart in a terminal, and the operation under a cell
"""
