"""All of the package: cores and their libraries, the lists of headers, the program, and the sources of the hooks."""

from PyInstaller.utils.hooks import collect_data_files, collect_dynamic_libs, collect_submodules

hiddenimports = collect_submodules("tensorflow_xpu", filter=lambda name: "__pyinstaller" not in name)
binaries = collect_dynamic_libs("tensorflow_xpu", search_patterns=["*.so", "*.so.*", "bin/conformance"])
datas = collect_data_files("tensorflow_xpu", includes=["lib/*.abi", "py.typed"])
# The loader runs tensorflow_xpu/hooks/start.py as a file.
module_collection_mode = "pyz+py"
