"""What can be said about rules without running them: can two apply together, can one apply at all.

Interval and enumeration analysis over the comparisons that policies are made of. It may say "I do not
know", never something false: every example input is run through the real programs before it is
shown.
"""
