"""The application in a browser, for a class: one process a visitor, on this machine.

server     the pages and the websockets, the number of visitors, and the end of a session
session    one visitor's process, as the server sees it; notes on the server's terminal
visitor    that process: the application for a guest, kept from files and from starting programs
driver     its terminal: keys come in, pictures go out, and nothing else
addresses  the port to listen at, or the next free one, and the names under which pages may reach it
page       what the browser loads besides textual-serve's script; nothing comes from elsewhere
"""
