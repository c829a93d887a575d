"""Views over the engines' objects: lines of text for a terminal, and files. A view computes nothing.

palette, caption, lines, sanitize, paths    colours, arrays in words, sentences and columns, files' paths
canvas, page                                pictures drawn line by line, and whole pages of them
layouts, plan_view, rounds, programs        arrays on a mesh, plans, collectives, compiled programs
times                                       what runs when, in a terminal, an SVG, a page, a trace
problem_picture, lesson_view                a problem as it is edited, a lesson
exports                                     files: programs, notebooks, pictures, pages, recordings
"""
