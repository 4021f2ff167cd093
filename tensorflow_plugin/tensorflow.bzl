"""What every file that includes TensorFlow's C++ headers is compiled with."""

TENSORFLOW_COPTS = [
    # The layout of TensorFlow's classes depends on what its own build defined: this, and no sanitizer.
    "-DNDEBUG",
    "-U__SANITIZE_ADDRESS__",
    "-U__SANITIZE_THREAD__",
    # With these, GCC takes the addresses in absl's constant expressions for unknown.
    "-fno-sanitize=null",
    "-fno-sanitize=nonnull-attribute",
    "-fno-sanitize=returns-nonnull-attribute",
    # ml_dtypes shifts negative values to the left, which C++20 defines.
    "-fno-sanitize=shift",
    "-Wno-sign-compare",
    "-Wno-unknown-pragmas",
]
