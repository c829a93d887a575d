"""The step screen: a collective, round by round.

pane        keys and state
choice      which collective, by which algorithm, on which links
player      the round that is shown, its picture and the progress bar
dialogs     all algorithms with their times, to choose one; the latency and bandwidth of a link
form        a form for another collective
"""
