"""Keras's versions beside the TensorFlow that the tests run with, one a day: numbers, and which hooks are on."""

import sys
import time
import zipfile

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run_code

sys.path.insert(0, str(ROOT / "tools"))
import hook_versions
from hook_digests import VERSIONS, Sources, differences, table_in, text_of, wheel

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

CODE = """
    import json, sys
    import tensorflow as tf, keras, tensorflow_xpu
    from tests.hooks import mutations, program
    got, want = program.run("/xpu:0"), program.run("/cpu:0")
    states = {hook.name: hook.state for hook in tensorflow_xpu.hooks.HOOKS}
    print(json.dumps([keras.__version__, mutations.differences(got, want), states]))
"""


def check(version, folder):
    """Runs the program with that version of Keras, which lies in the folder."""
    zipfile.ZipFile(wheel(f"keras=={version}")).extractall(folder)
    outcome = run_code(CODE, environment={"PYTHONPATH": f"{folder}:{ROOT}"}, cwd=ROOT)
    there, different, states = outcome.json
    off = {name for name, state in states.items() if state.startswith("off: ")}
    expected = {name for name, state in exceptions(version).items() if state == "off"}
    assert (there, different, off) == (version, [], expected), outcome


def exceptions(version):
    return hook_versions.exceptions(Sources("keras", version))


@pytest.mark.slow
def test_one_version_a_day(xpu_device, tmp_path):
    versions = VERSIONS["keras"]
    check(versions[int(time.time() // 86400) % len(versions)], tmp_path)


def test_the_table_is_on_the_page():
    """With a column for each TensorFlow and a row for the oldest and the newest Keras."""
    text = hook_versions.PAGE.read_text()
    table = text.partition(hook_versions.BEGIN)[2].partition(hook_versions.END)[0]
    head, _, *rows = table.splitlines()
    assert head == f"| Keras | {' | '.join(f'TensorFlow {version}' for version in VERSIONS['tensorflow'])} |"
    assert VERSIONS["keras"][0] in rows[0] and any(VERSIONS["keras"][-1] in row for row in rows)


def test_a_check_of_digests_names_what_changed():
    """The name, the version, the hook that relies on it, and what to do."""
    path = "keras.src.trainers.data_adapters.array_data_adapter:ArrayDataAdapter.get_tf_dataset"
    known = {path: {"4e668a912454": "3.8.0 to 3.15.1"}, "keras:gone": {"0123456789ab": "3.8.0"}}
    found = {path: {"4e668a912454": "3.8.0 to 3.16.0", "c5072e1af40d": "3.17.0"}}
    assert table_in(text_of(known)) == known and differences(known, known) == []
    other, new, gone = sorted(differences(known, found), key=lambda line: ("keras:gone" in line, "3.17.0" in line))
    assert path in other and "3.8.0 to 3.16.0 has the source 4e668a912454" in other and "3.8.0 to 3.15.1" in other
    assert path in new and "3.17.0" in new and "c5072e1af40d" in new and "change the hook batches" in new
    assert gone.startswith("keras:gone: ") and "0123456789ab" in gone and "it can go" in gone
