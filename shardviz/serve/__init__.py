"""The application in browsers, for a class, on this machine.

server        the pages and the websockets, and what a page may send
seats         who looks at which process: one of their own, or in a lecture the one for their size of window
session       a visitor's process, as the server sees it, and what it draws; notes on the server's terminal
fork_server   the process that has loaded everything, and forks the others
visitor       a forked process: the application for a guest, kept from files and programs, and its terminal
apps          the application of each role: a visitor, those who follow, a pupil alone, a teacher who leads
lecture       where the teacher and the pupils are, and what they predict, in memory
addresses     the port to listen at, or the next free one, and the names under which pages may reach it
page          what the browser loads besides textual-serve's script; nothing comes from elsewhere"""

PATIENCE_S = 4.0
"""The longest that an application takes to end by itself."""
