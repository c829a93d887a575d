"""The step screen: a collective, round by round.

pane        keys and state
chosen      which collective, by which algorithm, on which links
player      which round, whether it plays, how fast
round_view  the picture on screen
verdict     whether JAX has confirmed the numbers
document    all of it as JSON
form        a collective of one's own
"""
