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
    # The same with the kernels of devices that are no processors.
    "groups": {
        "XPU_TEST_BACKEND": "XPU_OPENCL",
        "XPU_TEST_OPENCL_GROUPS": "1",
        # PoCL takes a second or two for each kernel, and minutes for all of these.
        "GTEST_FILTER": "-Elementwise.RandomPrograms:Reduce.EveryKindAndType:Reduce.EmptyGivesTheIdentity:Reduce.NanAndInfinityByHand:Softmax.AllTypesAndShapes",
        "POCL_KERNEL_CACHE": "0",
        "POCL_MAX_PTHREAD_COUNT": "2",
        "XDG_CACHE_HOME": "/tmp/xpu_tests_cache",
    },
    "example": {
        "XPU_TEST_BACKEND": "XPU_EXAMPLE",
        # Plain loops take seconds for the large matrices of these.
        "GTEST_FILTER": "-MatMul.LongSums*:MatMul.SharedOut:MatMul.PartsOfRowsShareALargeMatrix:MatMul.Epilogues",
    },
    "isolated": {"XPU_TEST_ISOLATE": "1"},
    "delayed": {"XPU_TEST_FAULTS": "command:delay=2ms@1-300,copy:delay=1ms@1-300"},
}

# The tests of what the example has, which take seconds.
_EXAMPLE = ["contract_test", "copy_strided_test", "elementwise_test", "matmul_test"]

# The tests of what has kernels of groups.
_GROUPS = ["copy_strided_test", "elementwise_test", "gather_test", "random_test", "reduce_test", "softmax_test"]

def _run_test(context):
    link = context.actions.declare_file(context.label.name)
    context.actions.symlink(output = link, target_file = context.executable.program, is_executable = True)
    return [
        DefaultInfo(executable = link, runfiles = context.attr.program[DefaultInfo].default_runfiles),
        testing.TestEnvironment(context.attr.environment),
    ]

# A program with all backends in it is up to 180 MB under a sanitizer: no way to run it has one of its own.
run_test = rule(
    doc = "The test `program` once more, in another environment.",
    implementation = _run_test,
    test = True,
    attrs = {
        "program": attr.label(mandatory = True, executable = True, cfg = "target"),
        "environment": attr.string_dict(),
    },
)

def primitive_test(name, deps):
    """The test `name`, of name.cc, on the default backend, and name_WAY for other ways to run it.

    The other ways are tagged slow, but for the example's.
    """
    native.cc_test(
        name = name,
        size = "medium",
        srcs = [name + ".cc"],
        deps = deps,
    )
    for way, environment in _WAYS.items():
        if way == "example" and name not in _EXAMPLE:
            continue
        if way == "groups" and name not in _GROUPS:
            continue
        run_test(
            name = name + "_" + way,
            size = "large" if way in ["opencl", "groups"] else "medium",
            environment = environment,
            program = name,
            tags = {"example": [], "opencl": ["opencl", "slow"], "groups": ["opencl", "slow"]}.get(way, ["slow"]),
        )
