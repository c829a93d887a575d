"""`o`: a file, a folder or a text is found, told apart, and shown where it belongs.

kinds      what a file or a typed text is, the lines of a folder, and the command whose page shows it
dialog     the list of the folder's files, with a field that takes paths and texts; a profile is read here
pages      the windows: what a command prints, a sharding in every notation
arrays     the window of a program's arrays
"""
