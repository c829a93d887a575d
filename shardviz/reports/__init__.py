"""The costs of a compiled program, collective by collective, and the places where these stand."""
