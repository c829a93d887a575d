"""The step screen: a collective, round by round.

pane        keys and state
choice      which collective, by which algorithm, on which links
page        the head, the picture of a round, and the foot with JAX's verdict
player      the round that is shown, and how it plays
dialogs     all algorithms with their times, to choose one; the latency and bandwidth of a link
form        a form for another collective
"""
