"""Tests of a primitive, for each way to run them."""

# What the environment chooses: see device_under_test.h. The first few hundred commands of a test are held up: enough
# for whatever does not wait for its turn on the stream.
_WAYS = {
    "reference": {"XPU_TEST_BACKEND": "XPU_REFERENCE"},
    "isolated": {"XPU_TEST_ISOLATE": "1"},
    "delayed": {"XPU_TEST_FAULTS": "command:delay=2ms@1-300,copy:delay=1ms@1-300"},
}

def primitive_test(name, deps):
    """The test `name`, of name.cc, on the default backend; and, tagged slow, name_WAY for each other way to run it."""
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
    for way, env in _WAYS.items():
        native.cc_test(
            name = name + "_" + way,
            size = "medium",
            env = env,
            tags = ["slow"],
            deps = [":" + cases],
        )
