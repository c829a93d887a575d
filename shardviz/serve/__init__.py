"""The application in a browser, for a class: one process a visitor, on this machine.

server     the pages and the websockets, the number of visitors, and the end of a session
session    one visitor's process, as the server sees it; notes on the server's terminal
visitor    that process: the application for a guest, kept from files and from starting programs
apps       the application of each role: a visitor, a pupil who follows, a teacher who leads
driver     its terminal: keys come in, pictures go out, and nothing else
lecture    where the teacher and the pupils are, and what they predict, in memory
addresses  the port to listen at, or the next free one, and the names under which pages may reach it
page       what the browser loads besides textual-serve's script; nothing comes from elsewhere
"""
