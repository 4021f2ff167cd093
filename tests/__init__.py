"""The tests, and the environment that all of them begin with."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_XPU_CONFIG", "none")  # the tests' options are the tests' choice
# PoCL, an OpenCL device on the processor: on two threads, and without a cache of its own beside the plugin's.
os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", "2")
os.environ.setdefault("POCL_KERNEL_CACHE", "0")
