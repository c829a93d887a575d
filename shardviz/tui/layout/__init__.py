"""The layout screen: which device holds what."""
