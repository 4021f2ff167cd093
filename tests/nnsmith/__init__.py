"""Graphs that NNSmith generates. It solves constraints, so all of them are valid."""
