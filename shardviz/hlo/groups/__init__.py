"""Who takes part in a collective: groups of devices in every form, and the mesh axes that they follow."""
