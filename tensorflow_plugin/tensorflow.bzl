"""What is compiled against TensorFlow's C++, and therefore for each of its minor versions.

A target of such a library is for the TensorFlow of the Python that builds, @tensorflow. Beside it, for each other row of
third_party/tensorflows.bzl, there is one with the version in its name ("graph_2_20"), which only `make wheel-all`
builds. What sees no more of TensorFlow than its C API is compiled once, and works with all of them.
"""

load("@tensorflow//:version.bzl", "MINOR")
load("//third_party:tensorflows.bzl", "TENSORFLOWS")

# The versions that there are targets for: "2_20".
MINORS = [MINOR] + [minor.replace(".", "_") for minor in TENSORFLOWS if minor.replace(".", "_") != MINOR]

# The libraries that are made by tensorflow_library, as other packages name them.
_BOUND = [
    "//tensorflow_plugin/direct_call",
    "//tensorflow_plugin/direct_call:interface",
    "//tensorflow_plugin/cluster",
    "//tensorflow_plugin/device:interop",
    "//tensorflow_plugin/framework:invariant_values",
    "//tensorflow_plugin/framework:variable_lock",
    "//tensorflow_plugin/framework:implementation",
    "//tensorflow_plugin/graph",
    "//tensorflow_plugin/interop:tensors",
    "//tensorflow_plugin/tf_internals",
    "//tensorflow_plugin/tf_internals:eager_tensors",
    "//tensorflow_plugin/tf_internals:tensorflow_stream",
    "//tensorflow_plugin/tf_internals:tensors",
    "//tensorflow_plugin/tf_internals:thread_state",
]

# What every file that includes TensorFlow's C++ headers is compiled with.
TENSORFLOW_COPTS = [
    # The layout of TensorFlow's classes depends on what its own build defined: this, and no sanitizer.
    "-DNDEBUG",
    "-U__SANITIZE_ADDRESS__",
    "-U__SANITIZE_THREAD__",
    # With these, GCC takes the addresses in absl's constant expressions for unknown.
    "-fno-sanitize=null",
    "-fno-sanitize=nonnull-attribute",
    "-fno-sanitize=returns-nonnull-attribute",
    # ml_dtypes shifts negative values to the left, which C++20 defines.
    "-fno-sanitize=shift",
    "-Wno-sign-compare",
    "-Wno-unknown-pragmas",
]

def _ending(minor):
    return "" if minor == MINOR else "_" + minor

def _for(minor, deps):
    """These dependencies, for that version."""
    if minor == MINOR:
        return deps
    found = []
    for dep in deps:
        whole = "//" + native.package_name() + dep if dep.startswith(":") else dep
        if dep.startswith("@tensorflow//"):
            dep = dep.replace("@tensorflow//", "@tensorflow_%s//" % minor)
        elif whole in _BOUND:
            dep += _ending(minor) if ":" in dep else ":" + dep.split("/")[-1] + _ending(minor)
        found.append(dep)
    return found

def _tags(minor):
    return [] if minor == MINOR else ["manual"]

def tensorflow_library(name, deps, copts = TENSORFLOW_COPTS, **arguments):
    """A cc_library that is compiled against TensorFlow's C++. Its row in _BOUND is what has others use the right one."""
    package = native.package_name()
    label = "//" + package + ("" if package.split("/")[-1] == name else ":" + name)
    if label not in _BOUND:  # cores for other versions would get this one's TensorFlow beside theirs
        fail("%s is missing in _BOUND of tensorflow_plugin/tensorflow.bzl" % label)
    for minor in MINORS:
        native.cc_library(
            name = name + _ending(minor),
            copts = copts,
            tags = _tags(minor),
            deps = _for(minor, deps),
            **arguments
        )

def tensorflow_shared_library(name, deps, **arguments):
    """Shared libraries, one for each version: `name` has {} where the version goes."""
    for minor in MINORS:
        native.cc_binary(
            name = name.format(minor),
            linkshared = True,
            tags = _tags(minor),
            deps = _for(minor, deps),
            **arguments
        )
