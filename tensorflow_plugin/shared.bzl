"""What the cores for all versions of TensorFlow share: one library, libtensorflow_xpu_backends.so."""

# For what cores refer to in it. Its functions call each other as if they were in one program.
SHARED_COPTS = ["-fvisibility=default", "-fno-semantic-interposition"]
