"""Plans and programs on a machine: what runs when, what waits, and the memory that is live.

timeline_rows  the operations of each lane in rows, and a stretch of the drawn clock with round numbers
gantt          the chart in a terminal, and the operation under a cell
memory_curve   live memory under the chart
report         a whole page: totals, chart, savings, critical path, memory; one operation in words
trace          Chrome's trace events, for Perfetto
"""
