"""A problem while a person edits it: a form of texts, valid or not, and the last problem that it stated.

form          the fields, each declared once for every surface; their errors; undo and redo
parsing       a form read once, field by field
resolve       the problem that a form states with its plan, or the errors of its fields
enter         text into any field, in any notation
axis_edits    axes of the mesh and the specs that follow; axes on the dimensions of an array
retain_fields the specs and sizes that stay when the einsum changes
collective    the question of a collective of its own
options       options of a problem, or a table of them, as a form
command_line  a form as a command line, and a pasted command line as a form
spans         specs and products as text, the names of mesh axes apart
summary       the problem on one line; the questions of a session
wording       errors as the application words them
share         a form as a JSON object, and as a string that fits a chat message
jumps         the places with a name to go to
state_file    a JSON file in the platform's state directory; the last session in one
examples      problems to begin with"""
