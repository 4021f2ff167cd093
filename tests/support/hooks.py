"""The package's hooks into TensorFlow and Keras, where tests depend on one."""

import importlib.metadata
import re

import pytest

from tests.conftest import PACKAGES, ROOT, TENSORFLOW


def is_tested_pair():
    """Whether TensorFlow and Keras are those that requirements-dev.txt names: with them, every hook has to be there."""
    wanted = dict(re.findall(r"^(tensorflow-cpu|keras)==(.*)$", (ROOT / "requirements-dev.txt").read_text(), re.M))
    return (TENSORFLOW, keras_version()) == (wanted["tensorflow-cpu"], wanted["keras"])


def keras_version():
    found = importlib.metadata.distributions(name="keras", path=[str(PACKAGES)])
    return next((distribution.version for distribution in found), None)


def needs_hook(there, hook):
    """The mark of tests of a hook. Where it is not there they are skipped, but only with other versions than those that
    the project is tested with; with these it is an error.
    """
    absent = f"{hook} is not in force with TensorFlow {TENSORFLOW} and Keras {keras_version()}"
    if not there and is_tested_pair():
        raise AssertionError(f"{absent}, which requirements-dev.txt names")
    return pytest.mark.skipif(not there, reason=absent)
