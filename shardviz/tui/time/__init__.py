"""5 Time: when each operation runs, what it waits for, and the memory that is live.

pane            the screen: which timeline is shown, its report, and the operation that is selected
timelines       the timelines of a plan or of a target's answer, as they can be told now
shown_timelines which of them are known, which are to be worked out, and the one or two that are shown
parts           a timeline prepared for its chart: neighbours of operations, lanes as lines
details         words: the heading, the selected operation, the report
chart           the lanes of one or two timelines in a window of time, which zooms and pans
"""
