"""The ways to divide the work of statements over a mesh, and plans of trees and of programs of them."""
