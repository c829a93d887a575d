"""Profiles of real devices: the times of what ran, beside those that were predicted."""
