"""Processes that find TensorFlow imported: a server that has imported it, without plugins, and forks.

To import TensorFlow takes seconds, which most tests that need a process of their own do not want to spend. Nearly all
of it comes before TensorFlow looks for plugins, and until then TensorFlow runs no threads. So the server imports it
without finding any, and in each child the statement `import tensorflow` does what is left: it loads the plugins.

Processes that are about importing, that change TensorFlow's environment or that use what TensorFlow imports if it is
there (Keras, JAX) are not for it.
"""

import contextlib
import importlib.machinery
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types

LIMIT = 1 << 17  # bytes of a request


class ForkServer:
    """The server's client; starts it."""

    def __init__(self, environment, site):
        """With these environment variables, and with the plugins of this site-packages folder for the children."""
        self.environment = environment
        self._one_at_a_time = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), str(site)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def run(self, code, environment, timeout, cwd):
        """Runs Python code in a child; None if the server is busy. Arguments, result and errors: `subprocess.run`'s."""
        if not self._one_at_a_time.acquire(blocking=False):
            return None
        with contextlib.ExitStack() as stack:
            stack.callback(self._one_at_a_time.release)
            files = [stack.enter_context(tempfile.TemporaryFile("w+", errors="replace")) for _ in ("stdout", "stderr")]
            request = json.dumps({"code": code, "environment": environment, "cwd": cwd and str(cwd)}).encode()
            assert len(request) < LIMIT
            socket.send_fds(self._channel, [request], [file.fileno() for file in files])
            child = self._answer()
            self._channel.settimeout(timeout)
            try:
                status = self._answer()
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                self._channel.settimeout(None)
                self._answer()
                raise subprocess.TimeoutExpired("code in a forked process", timeout) from None
            self._channel.settimeout(None)
            output = []
            for file in files:
                file.seek(0)
                output.append(file.read())
            return subprocess.CompletedProcess(["-c"], status, *output)

    def _answer(self):
        answer = self._channel.recv(LIMIT)
        assert answer, "the server has ended: its stderr says why"
        return json.loads(answer)


class PluginsAtImport:
    """Import hook of a child: `import tensorflow` gives the module that is there, once it has loaded the plugins."""

    def __init__(self, tensorflow, site):
        self.tensorflow, self.attributes, self.site = tensorflow, dict(vars(tensorflow)), site

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "tensorflow" else None

    def create_module(self, spec):
        return self.tensorflow

    def exec_module(self, module):
        sys.meta_path.remove(self)
        for name in ("__spec__", "__loader__", "__package__"):  # the import system has written its own
            setattr(module, name, self.attributes[name])
        # As the last lines of tensorflow/__init__.py.
        from tensorflow.python.framework import load_library

        plugins = f"{self.site}/tensorflow-plugins"
        load_library.load_library(plugins)
        load_library.load_pluggable_device_library(plugins)


def import_without_plugins():
    """TensorFlow, which finds no folder of plugins, nor libraries that it imports only if they are there."""
    for name in ("keras", "jax"):
        sys.modules[name] = None
    exists = os.path.exists
    os.path.exists = lambda path: not str(path).endswith("/tensorflow-plugins") and exists(path)
    try:
        import tensorflow
    finally:
        os.path.exists = exists
    return tensorflow


def serve(channel):
    """Forks for each request; returns it, in the child. Ends the server when its client is gone."""
    while True:
        message, files, _, _ = socket.recv_fds(channel, LIMIT, 2)
        if not message:
            sys.exit()
        child = os.fork()
        if child == 0:
            channel.close()
            for file, standard in zip(files, (1, 2)):
                os.dup2(file, standard)
                os.close(file)
            return json.loads(message)
        for file in files:
            os.close(file)
        channel.send(json.dumps(child).encode())
        _, status = os.waitpid(child, 0)
        channel.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def main():
    """Serves; in a child, makes the process what `python -c` would have made it. Returns its code and namespace."""
    channel, site = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    tensorflow = import_without_plugins()
    request = serve(channel)
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["cwd"]:
        os.chdir(request["cwd"])
    del sys.modules["tensorflow"]
    sys.meta_path.insert(0, PluginsAtImport(tensorflow, site))
    sys.argv, sys.path[0] = ["-c"], ""
    sys.modules["__main__"] = types.ModuleType("__main__")
    return compile(request["code"], "<string>", "exec"), vars(sys.modules["__main__"])


if __name__ == "__main__":
    server = sys.modules["__main__"]  # whose functions are needed as long as the process runs
    exec(*main())
