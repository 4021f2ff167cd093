"""Random graphs of registered ops, in clusters, op by op and on the CPU: `python -m tests.fuzz --help`."""
