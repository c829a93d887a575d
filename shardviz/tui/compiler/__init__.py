"""The compiler screen."""
