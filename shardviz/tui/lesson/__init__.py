"""A lesson inside the application: its words take the problem's place until the sandbox opens."""
