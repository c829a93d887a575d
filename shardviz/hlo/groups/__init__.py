"""The devices of a collective: groups in every form, and the mesh axes that they follow."""
