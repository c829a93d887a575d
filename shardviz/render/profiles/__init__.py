"""Profiles: what each device did, step by step, the collectives as they ran, and a step as a timeline.

profile_view      the page
activity_lines    devices and steps: compute, communication, what of it is exposed, idle time
timing_lines      collectives with their bandwidths beside what was predicted, and who was waited for
"""
