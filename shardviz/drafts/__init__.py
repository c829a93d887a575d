"""A problem while a person edits it: texts in fields, valid or not, and the last problem that they made.

draft                all fields, as they stand
rows                 the arrays of the draft, one a row
scene                what can be seen of a draft
reading              draft → scene: the problem and its plan, or what is wrong and in which field
collective_question  a collective of its own → the question that the player plays
edits/               one change of a draft each: axes of the mesh, specs, whole fields
parsing              what edits can read of a draft
history              undo and redo
words                draft → the words of a command line
options, lines       the options of a command line, and its whole text → draft
table                the same options in a file → draft
summary              the parts of the top line
book_text, pieces    products and specs as text, their mesh axes apart
plain_text           any text on one line that a terminal can show
document             a draft as a JSON object
state_file, saved    the last session, in the platform's state directory
examples             problems to begin with
"""
