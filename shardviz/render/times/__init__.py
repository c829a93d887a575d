"""Plans and programs on a machine: what runs when, what waits, and the memory that is live.

timeline_rows  the operations of each lane in rows, a stretch of the drawn clock; Chrome's trace events
gantt          the chart in a terminal, and the operation under a cell
live_memory    the memory under the chart, and in words
report         a whole page: totals, chart, savings, critical path; one operation in words; several tellers
"""
