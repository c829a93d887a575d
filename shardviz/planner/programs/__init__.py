"""The cheapest plans of several statements: of a tree of them, and of any program."""
