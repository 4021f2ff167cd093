"""The TensorFlow versions that `make wheel-all` builds for; docs/versions.md says how to add one.

This file is read as Python, too (tools/versions.py).
"""

# The minor version, and the release (or, before there is one, the candidate) whose headers its core is compiled with.
TENSORFLOWS = {
    "2.19": "2.19.1",
    "2.20": "2.20.0",
    "2.21": "2.21.0",
    "2.22": "2.22.0rc0",
}
