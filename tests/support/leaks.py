"""Pytest plugin of tools/sanitized.py: runs a part of the tests, and has the leak sanitizer look at what they leave.

Leaks are looked for when the tests are done. At the end of the process, half of what Python and TensorFlow still hold
looks lost. tools/sanitized.py reads what it writes.
"""

import ctypes
import gc
import pathlib
import zlib

import pytest


def pytest_addoption(parser):
    parser.addoption("--part", default="0/1", metavar="K/N", help="every Nth test, those with remainder K")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Which part a test is in does not depend on which others there are."""
    part, parts = map(int, config.getoption("part").split("/"))
    chosen = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def keep_what_python_holds(library):
    """Names to the leak sanitizer the memory that Python's allocator divides by itself, where it would not look.

    Python could use malloc instead (PYTHONMALLOC), and take half as long again.
    """
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        addresses, mode, _, _, inode, *_ = line.split()
        begin, end = (int(address, 16) for address in addresses.split("-"))
        # The sanitizer's own heap is below.
        if inode == "0" and mode == "rw-p" and begin >= 0x7E0000000000:
            library.__lsan_register_root_region(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput") or not session.config.pluginmanager.hasplugin("dsession"):
        library = ctypes.CDLL(None)
        look = getattr(library, "__lsan_do_recoverable_leak_check", None)
        if look is not None:
            gc.collect()
            keep_what_python_holds(library)
            look()
