"""Tests of a primitive, for each way to run them."""

# What the environment chooses: see device_under_test.h. The first few hundred commands of a test are held up: enough
# for whatever does not wait for its turn on the stream.
_WAYS = {
    "reference": {"XPU_TEST_BACKEND": "XPU_REFERENCE"},
    "opencl": {
        "XPU_TEST_BACKEND": "XPU_OPENCL",
        # PoCL on two threads, without a cache of its own; that of the backend is kept from run to run.
        "POCL_KERNEL_CACHE": "0",
        "POCL_MAX_PTHREAD_COUNT": "2",
        "XDG_CACHE_HOME": "/tmp/xpu_tests_cache",
    },
    "isolated": {"XPU_TEST_ISOLATE": "1"},
    "delayed": {"XPU_TEST_FAULTS": "command:delay=2ms@1-300,copy:delay=1ms@1-300"},
}

def primitive_test(name, deps):
    """The test `name`, of name.cc, on the default backend; and, tagged slow, name_WAY for other ways to run it."""
    cases = name + "_cases"
    native.cc_library(
        name = cases,
        testonly = True,
        srcs = [name + ".cc"],
        deps = deps,
        alwayslink = True,
    )
    native.cc_test(
        name = name,
        size = "medium",
        deps = [":" + cases],
    )
    for way in _WAYS.keys():
        native.cc_test(
            name = name + "_" + way,
            size = "large" if way == "opencl" else "medium",
            env = _WAYS[way],
            tags = ["slow"] + (["opencl"] if way == "opencl" else []),
            deps = [":" + cases],
        )
