"""Plans and programs on a machine: what runs when, what waits, and the memory that is live.

window         a stretch of the drawn clock, zoomed and panned, with ticks at round numbers
timeline_rows  the operations of each lane in rows, prepared once for pictures of any stretch
gantt          the chart in a terminal, and the operation under a cell
memory_curve   live memory under the chart
op_details     a timeline on one line, and one of its operations in words
report         a whole page: totals, chart, savings, critical path, memory
trace          Chrome's trace events, for Perfetto
"""
