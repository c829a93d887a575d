"""Compiled programs: their collectives, their text, their passes, and several targets side by side."""
