"""The outside world: what the Python environment and the machine already hold, as Bazel repositories.

Nothing is downloaded and no source is copied. PYTHON_BIN_PATH names the Python whose site-packages have
TensorFlow, pybind11, oneDNN and tvm_ffi (for DLPack's header); without it, `.venv` in the workspace is used. That
TensorFlow is @tensorflow. For `make wheel-all`, tools/versions.py has put the others into build/versions: they are
@tensorflow_2_20 and so on.
"""

load(":tensorflows.bzl", "TENSORFLOWS")

_PROBE = """
import importlib.metadata as m, importlib.util as u, os, sys, sysconfig
def package(name):
    spec = u.find_spec(name)
    return os.path.dirname(spec.origin) if spec else ""
# oneDNN's wheels put files into the prefix, which in pip's isolated builds is not sys.prefix.
prefixes = [sys.prefix] + [os.path.abspath(p + "/../../..") for p in sys.path if p.endswith("site-packages")]
print(next((p for p in prefixes if os.path.exists(p + "/include/dnnl.hpp")), sys.prefix))
print(sysconfig.get_path("include"))
print(package("tensorflow"))
print(package("pybind11"))
print(package("tvm_ffi"))
names = {"tensorflow", "tensorflow-cpu", "tensorflow-rocm", "tf-nightly", "tf-nightly-cpu"}
print(next((d.version for d in m.distributions() if d.metadata["Name"].replace("_", "-") in names), ""))
"""

def _python(ctx):
    """Returns what _PROBE finds, as a struct of absolute paths."""
    python = ctx.os.environ.get("PYTHON_BIN_PATH", "")
    if not python:
        python = str(ctx.path(Label("//:WORKSPACE")).dirname) + "/.venv/bin/python"
    result = ctx.execute([python, "-c", _PROBE])
    if result.return_code != 0:
        fail("PYTHON_BIN_PATH={} does not run: {}. Run `make setup` or name a Python 3 with the packages of requirements-dev.txt.".format(python, result.stderr))
    prefix, include, tensorflow, pybind11, tvm_ffi, version = result.stdout.splitlines()[:6]
    return struct(python = python, prefix = prefix, include = include, tensorflow = tensorflow, pybind11 = pybind11, tvm_ffi = tvm_ffi, version = version)

def _need(value, package, python):
    if not value:
        fail("{} has no package '{}': install requirements-dev.txt into it.".format(python, package))
    return value

def _tensorflow_impl(ctx):
    if ctx.attr.version:
        version = ctx.attr.version
        tf = "%s/build/versions/%s/tensorflow" % (ctx.path(Label("//:WORKSPACE")).dirname, version)
        if not ctx.path(tf).exists:
            fail("{} is missing: `make wheel-all` puts TensorFlow {} there.".format(tf, version))
    else:
        p = _python(ctx)
        tf = _need(p.tensorflow, "tensorflow", p.python)
        version = p.version
    minor = "_".join(version.split(".")[:2])
    tf_version = version.replace("rc", "-rc").replace(".dev", "-dev")  # as TF_Version() writes it
    for folder in ["tensorflow", "tsl", "xla", "absl", "google", "Eigen", "unsupported", "ml_dtypes", "external", "third_party"]:
        ctx.symlink(tf + "/include/" + folder, "include/" + folder)
    ctx.symlink(tf + "/libtensorflow_framework.so.2", "libtensorflow_framework.so.2")
    ctx.symlink(tf + "/libtensorflow_cc.so.2", "libtensorflow_cc.so.2")
    ctx.symlink(tf + "/python/lib_pywrap_tensorflow_common.so", "lib_pywrap_tensorflow_common.so")
    ctx.file("version.bzl", 'MINOR = "%s"\nVERSION = "%s"\n' % (minor, tf_version))
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])

# The C API: stream executor, kernels, grappler, profiler.
cc_library(
    name = "c_api",
    hdrs = glob(["include/tensorflow/c/**/*.h", "include/tensorflow/core/platform/ctstring*.h", "include/xla/tsl/c/**/*.h", "include/tsl/**/*.h", "include/xla/tsl/**/*.h"]),
    includes = ["include"],
)

# TensorFlow's own C++ headers: only for the files that reach into one minor version on purpose.
cc_library(
    name = "cc_headers",
    hdrs = glob([
        "include/tensorflow/**/*.h", "include/tensorflow/**/*.inc", "include/tsl/**/*.h", "include/xla/**/*.h",
        "include/absl/**/*.h", "include/absl/**/*.inc", "include/google/**", "include/Eigen/**", "include/unsupported/**",
        "include/ml_dtypes/**", "include/third_party/**", "include/external/farmhash_archive/src/*.h",
    ]),
    defines = ["EIGEN_MAX_ALIGN_BYTES=64", "XPU_TENSORFLOW=%d"],
    includes = ["include", "include/external/farmhash_archive/src"],
)

cc_import(
    name = "framework",
    shared_library = "libtensorflow_framework.so.2",
)

# The ops and kernels that TensorFlow registers when it is loaded.
cc_library(
    name = "kernels",
    srcs = ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"],
)

# What TensorFlow's own Python extensions are linked against.
cc_library(
    name = "python_libraries",
    defines = ["XPU_TENSORFLOW_VERSION=%s", "XPU_TENSORFLOW_MINOR=%s"],
    srcs = ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2", "lib_pywrap_tensorflow_common.so"],
)
""" % (int(version.split(".")[0]) * 1000 + int(version.split(".")[1]), tf_version, minor))

def _python_impl(ctx):
    p = _python(ctx)
    pybind11 = _need(p.pybind11, "pybind11", p.python)
    ctx.symlink(p.include, "python_include")
    ctx.symlink(pybind11 + "/include", "pybind11_include")
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["python_include/**/*.h"]),
    includes = ["python_include"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11_include/**/*.h"]),
    includes = ["pybind11_include"],
    deps = [":headers"],
)
""")

def _onednn_impl(ctx):
    p = _python(ctx)
    if not ctx.path(p.prefix + "/include/dnnl.hpp").exists:
        _need("", "onednn-devel-cpu-gomp", p.python)
    ctx.symlink(p.prefix + "/include", "prefix_include")
    ctx.symlink(p.prefix + "/lib/libdnnl.so.3", "libdnnl.so.3")
    # The OpenMP runtime that oneDNN and our thread teams share travels in the wheel.
    gomp = ctx.execute(["gcc", "-print-file-name=libgomp.so.1"]).stdout.strip()
    ctx.symlink(gomp, "libgomp.so.1")
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "onednn",
    srcs = ["libdnnl.so.3"],
    hdrs = glob(["prefix_include/dnnl*", "prefix_include/oneapi/**"]),
    includes = ["prefix_include"],
)

exports_files(["libdnnl.so.3", "libgomp.so.1"])
""")

def _dlpack_impl(ctx):
    p = _python(ctx)
    tvm_ffi = _need(p.tvm_ffi, "tvm_ffi", p.python)
    ctx.symlink(tvm_ffi + "/include/dlpack", "include/dlpack")
    ctx.file("BUILD", """
cc_library(
    name = "dlpack",
    hdrs = ["include/dlpack/dlpack.h"],
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

def _googletest_impl(ctx):
    for folder in ["gtest"]:
        if not ctx.path("/usr/include/" + folder).exists:
            fail("googletest is not installed: apt-get install libgtest-dev (make setup does it).")
        ctx.symlink("/usr/include/" + folder, "include/" + folder)
    lib = ctx.execute(["gcc", "-print-file-name=libgtest.a"]).stdout.strip()
    main = ctx.execute(["gcc", "-print-file-name=libgtest_main.a"]).stdout.strip()
    ctx.symlink(lib, "libgtest.a")
    ctx.symlink(main, "libgtest_main.a")
    ctx.file("BUILD", """
cc_library(
    name = "gtest_main",
    srcs = ["libgtest_main.a", "libgtest.a"],
    hdrs = glob(["include/gtest/**/*.h"]),
    includes = ["include"],
    linkopts = ["-lpthread"],
    visibility = ["//visibility:public"],
)
""")

# The oldest that the host backend's kernels are written for: "world", major and minor version, as Eigen counts.
_EIGEN_VERSION = [3, 4, 0]

def _eigen_impl(ctx):
    found = [path for path in ["/usr/include/eigen3", "/usr/local/include/eigen3"] if ctx.path(path + "/Eigen").exists]
    if not found:
        fail("Eigen is not installed: apt-get install libeigen3-dev (make setup does it).")
    macros = found[0] + "/Eigen/src/Core/util/Macros.h"
    version = []
    for name in ["EIGEN_WORLD_VERSION", "EIGEN_MAJOR_VERSION", "EIGEN_MINOR_VERSION"]:
        version.append(int(ctx.execute(["sed", "-n", "s/^#define %s \\([0-9]*\\).*/\\1/p" % name, macros]).stdout.strip()))
    if version < _EIGEN_VERSION:
        fail("{} is Eigen {}, expected {} or later.".format(found[0], version, _EIGEN_VERSION))
    ctx.symlink(found[0] + "/Eigen", "include/Eigen")

    # TensorFlow's headers bring an Eigen of another version, and inline functions of both, under one name, would be
    # one function in the core. "xpu_eigen/Dense.h" is Eigen/Dense in a namespace of its own, xpu_eigen.
    ctx.symlink(found[0], "include/eigen3")
    for name, header in {"Dense": "Eigen/Dense", "SpecialFunctions": "unsupported/Eigen/SpecialFunctions"}.items():
        ctx.file("include/xpu_eigen/" + name + ".h", "#define Eigen xpu_eigen\n#include <eigen3/" + header + ">\n#undef Eigen\n")
    ctx.file("BUILD", """
cc_library(
    name = "eigen",
    hdrs = glob(["include/Eigen/**", "include/xpu_eigen/*"]),
    textual_hdrs = glob(["include/eigen3/Eigen/**", "include/eigen3/unsupported/Eigen/**"]),
    # Nothing of it that is not under MPL-2.0 or as free. Threads are ours.
    defines = ["EIGEN_MPL2_ONLY", "EIGEN_DONT_PARALLELIZE"],
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

def _opencl_headers_impl(ctx):
    if not ctx.path("/usr/include/CL/cl.h").exists:
        fail("OpenCL's headers are not installed: apt-get install opencl-c-headers (make setup does it).")
    ctx.symlink("/usr/include/CL", "include/CL")
    ctx.file("BUILD", """
# Declarations alone: the driver is opened when the program runs.
cc_library(
    name = "opencl_headers",
    hdrs = glob(["include/CL/*.h"]),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

_tensorflow = repository_rule(
    implementation = _tensorflow_impl,
    attrs = {"version": attr.string(doc = "One of TENSORFLOWS; empty: whichever that Python has.")},
    environ = ["PYTHON_BIN_PATH", "PYTHONPATH"],
    local = True,
)
_python_repository = repository_rule(implementation = _python_impl, environ = ["PYTHON_BIN_PATH", "PYTHONPATH"], local = True)
_onednn = repository_rule(implementation = _onednn_impl, environ = ["PYTHON_BIN_PATH", "PYTHONPATH"], local = True)
_dlpack = repository_rule(implementation = _dlpack_impl, environ = ["PYTHON_BIN_PATH", "PYTHONPATH"], local = True)
_googletest = repository_rule(implementation = _googletest_impl, local = True)
_eigen = repository_rule(implementation = _eigen_impl, local = True)
_opencl_headers = repository_rule(implementation = _opencl_headers_impl, local = True)

def xpu_repositories():
    _tensorflow(name = "tensorflow")
    for minor, version in TENSORFLOWS.items():
        _tensorflow(name = "tensorflow_" + minor.replace(".", "_"), version = version)
    _python_repository(name = "python")
    _onednn(name = "onednn")
    _dlpack(name = "dlpack")
    _googletest(name = "googletest")
    _eigen(name = "eigen")
    _opencl_headers(name = "opencl_headers")
