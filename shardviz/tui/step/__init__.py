"""The step screen: a collective, round by round.

pane        keys and state
chosen      which collective, by which algorithm, on which links
stepped     its rounds, numbers and cost, worked out
player      which round, whether it plays, how fast
page        the lines above, in and below the picture
round_view  the picture on screen
form        a collective of one's own
"""
