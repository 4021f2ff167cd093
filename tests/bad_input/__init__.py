"""Calls with one thing wrong, drawn by hypothesis: every op refuses them as TensorFlow's CPU kernel does."""
