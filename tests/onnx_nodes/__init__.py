"""ONNX's own tests of its operators, with stored results, as an oracle for TensorFlow's ops on the XPU."""
