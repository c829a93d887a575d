"""Plans of several statements: of a tree, of any program, and the least that a program's plan can cost."""
