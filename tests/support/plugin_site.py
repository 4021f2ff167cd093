"""Site-packages folders with a plugin in any condition."""

import shutil

from tests.support.installed import CORE, LOADER, SITE
from tests.support.processes import run_code


class PluginSite:
    """A site-packages folder with a copy of the plugin, to be damaged and then used by a fresh process."""

    def __init__(self, folder, packages, python):
        self.folder, self.packages, self.python = folder / "site-packages", packages, python
        self.plugins = self.folder / "tensorflow-plugins"
        self.package = self.folder / "tensorflow_xpu"
        self.lib = self.package / "lib"
        shutil.copytree(SITE / "tensorflow-plugins", self.plugins)
        shutil.copytree(SITE / "tensorflow_xpu", self.package, ignore=shutil.ignore_patterns("__pycache__", "libdnnl*"))
        for library in (SITE / "tensorflow_xpu" / "lib").glob("libdnnl*"):
            (self.lib / library.name).symlink_to(library)
        self.core, self.loader = self.lib / CORE, self.plugins / LOADER

    def environment(self, **variables):
        """The environment of a process that finds this copy and no other."""
        return {"PYTHONPATH": f"{self.folder}:{self.packages}", **variables}

    def run_code(self, code, **variables):
        """Runs Python code with this copy of the plugin installed."""
        return run_code(code, environment=self.environment(**variables), python=self.python)
