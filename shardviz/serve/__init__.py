"""The application in a browser, for a class: one process a visitor, on this machine.

server       the pages and the websockets, how many visitors there may be, and when a session ends
connections  how many there may be, and which of them stay
session      one visitor's process, as the server sees it
visitor      that process: the application, for a guest
driver       how it talks to the server: keys come in, pictures go out, and nothing else
guard        what keeps it from files and from starting programs
notes        what the server says on its own terminal
origins      whose pages may talk to the server
ports        the port to listen at, or the next free one
page         what the browser loads besides textual-serve's script; nothing comes from elsewhere
"""
