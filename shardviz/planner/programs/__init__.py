"""Plans of programs whose arrays are used several times: directed acyclic graphs of statements."""
