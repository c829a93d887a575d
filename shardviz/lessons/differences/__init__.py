"""What a sandbox has that a goal does not want: the first difference of each kind, in one sentence.

kept      what had to stay as the lesson set it up
layouts   who holds which part of an array
plans     what a plan sends
results   with which numbers a collective ends
"""
