"""Programs import TensorFlow, which loads this package's plugin from a folder; no import says so.

PyInstaller's own hook for TensorFlow takes that folder, ``tensorflow-plugins``, for a module.
"""

hiddenimports = ["tensorflow_xpu"]
