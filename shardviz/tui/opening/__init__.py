"""`o`: a file, a folder or a text is found, told apart, read beside the screen, and shown where it belongs.

kinds      what a file or a typed text is, and the lines of a folder
reading    its contents: a program's report, the modules of a folder of dumps, a profile, changes
dialog     the list of the folder's files, with a field that takes paths and texts; the progress of a reading
pages      the windows of a program, of a folder's modules, of changes, and of a sharding in every notation
"""
