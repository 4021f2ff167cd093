"""The benchmarks that `python -m tensorflow_xpu bench` runs (bench.py), each in a process of its own."""
