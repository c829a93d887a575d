"""Screens above the screen: help, examples, code, export, the command line."""
