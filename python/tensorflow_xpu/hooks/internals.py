"""The hooks that the core has in C++. Generated: `python -m tests.hooks.document` writes it."""

#: Those without which there is no XPU.
REQUIRED = (
    "kernels",
    "variables",
)

#: All others.
MAY_BE_LEFT_OUT = (
    "tensor_lists",
    "tensor_arrays",
    "graphs",
    "clusters",
    "direct_calls",
    "copies",
    "direct_copies",
    "fork_threads",
    "jit",
    "tf32",
    "eager_tensors",
    "holders",
    "thread_state",
    "shapes",
)
