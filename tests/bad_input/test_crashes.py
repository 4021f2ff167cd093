"""No spoiled call ends the process that makes it: calls of all ops, in parts, which tools/sanitized.py runs, too.

The test in test_bad_calls.py compares the results of the calls with the CPU; this one examines this project's code
alone.
"""

import zlib

import pytest

from tests.bad_input import spoil
from tests.bad_input.verdicts import endings

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.slow]

PARTS = 12
SEED = 2


def calls_of_part(part):
    """A call of each op of the part, and one in a tf.function."""
    ops = [op for op in spoil.choices() if zlib.crc32(op.encode()) % PARTS == part]
    return [call for op in ops for traced in (False, True) for call in spoil.draw(op, 1, SEED, traced)]


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_end_no_process(part, xpu_device):
    ended = endings(calls_of_part(part))
    assert not ended, "\n\n".join(f"{call}\n{call.to_json()}\n{how}" for call, how in ended.items())


def test_parts_have_all_ops():
    calls = [call for part in range(PARTS) for call in calls_of_part(part)]
    assert len({call.op for call in calls}) > 550
    assert len(calls) > 1100 and sum(call.traced for call in calls) > 550
