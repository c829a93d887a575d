"""Views over the engine's objects: text for a terminal and JSON documents. A view computes nothing."""
