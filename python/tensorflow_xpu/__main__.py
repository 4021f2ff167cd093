"""``python -m tensorflow_xpu COMMAND``: the commands are below."""

import argparse
import importlib
import sys

#: Each with the module and the function that runs it.
COMMANDS = {
    "doctor": ("doctor", "main", "say whether TensorFlow can use an XPU here, and if not, why"),
    "selftest": ("selftest", "main", "check what is installed, by what it computes: a minute"),
    "bench": ("bench", "main", "compare the XPU with TensorFlow's CPU on this machine: a minute"),
    "devices": ("cli", "devices", "list the devices that are installed, those that are not enabled, too"),
    "use": ("cli", "use", "choose the backend for all programs"),
    "config": ("cli", "config", "show the options and who set them, or change the configuration file"),
    "ops": ("ops", "main", "list the ops that have kernels for an XPU, by name, type or family"),
    "conformance": ("conformance", "main", "examine the library of this plugin or of another"),
}


def main() -> int:
    """Runs the command that the command line names. Returns its exit code, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorflow_xpu",
        description="XPU for TensorFlow",
        epilog="\n".join(f"  {name:14}{text}" for name, (_, _, text) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, help="one of these, each with its own --help:")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the command's arguments")
    options = parser.parse_args()
    module, function, _ = COMMANDS[options.command]
    return int(getattr(importlib.import_module(f"tensorflow_xpu.{module}"), function)(options.arguments))


if __name__ == "__main__":
    sys.exit(main())
