"""Views over the engines' objects: lines of text for a terminal, and files. A view computes nothing.

palette, lines, tables, caption   colours; sentences and bars; tables; arrays in words
layouts, rounds, programs      arrays on a mesh, collectives, compiled programs
plan_view                      a step's row, made once, and the tables of it
cost_view, plan_pages          what a plan costs in words; its pages
times                          what runs when, in a terminal, an SVG, a page, a trace
problem_picture, lesson_view   a problem as it is edited, a lesson
exports                        files: programs, notebooks, pictures, pages"""
