"""Questions and their answers: what the command line, Python, the application and exports show.

A file has one question, frozen and checked once, and its answer, frozen; a surface makes the question of what
it was given, and shows the answer.

plans     a problem: its plan, its rankings, its cost over sizes, beside another, one step of it; what the
          compilers make of it, one after another
programs  a program's text, its collectives and their cost
search    the best meshes and shardings of a program
requests  targets that are asked together and answer in order"""
