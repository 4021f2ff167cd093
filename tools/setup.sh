#!/usr/bin/env bash
# Makes this checkout ready to build and test, and does nothing where it is already: a C++ compiler, Bazel, googletest,
# Eigen, OpenCL's headers and a driver (with apt, as root or through sudo, only what is missing), then .venv with
# requirements-dev.txt and the requirement files given as arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON="${PYTHON:-python3}"

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

apt_install() {
  command -v apt-get >/dev/null || fail "please install $* (or their equivalents): this machine has no apt-get to do it"
  local sudo=()
  if [[ "$(id -u)" != 0 ]]; then
    command -v sudo >/dev/null || fail "please run as root: apt-get install $*"
    sudo=(sudo)
  fi
  say "installing $* with apt-get"
  if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >/tmp/xpu-apt.log 2>&1; then
    "${sudo[@]}" apt-get update >>/tmp/xpu-apt.log 2>&1 || true
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >>/tmp/xpu-apt.log 2>&1 ||
      { tail -5 /tmp/xpu-apt.log >&2; fail "apt-get install $* failed (see /tmp/xpu-apt.log)"; }
  fi
}

# The machine.
missing=()
command -v g++ >/dev/null || missing+=(g++)
command -v strip >/dev/null || missing+=(binutils)
[[ -e /usr/include/gtest/gtest.h ]] || missing+=(libgtest-dev)
[[ -e /usr/include/eigen3/Eigen/Core || -e /usr/local/include/eigen3/Eigen/Core ]] || missing+=(libeigen3-dev)
[[ -e /usr/include/CL/cl.h ]] || missing+=(opencl-c-headers)
tools/bazel.sh --which >/dev/null 2>&1 || missing+=(bazel-bootstrap)
command -v "$PYTHON" >/dev/null || missing+=(python3 python3-venv)
[[ ${#missing[@]} == 0 ]] || apt_install "${missing[@]}"
# A driver of OpenCL and what loads drivers, for tests: PoCL, on the processor. The build needs neither.
opencl=()
compgen -G '/etc/OpenCL/vendors/*.icd' >/dev/null || opencl+=(pocl-opencl-icd)
/sbin/ldconfig -p | grep -q 'libOpenCL\.so\.1' || opencl+=(ocl-icd-libopencl1)
if [[ ${#opencl[@]} != 0 ]]; then
  (apt_install "${opencl[@]}") || say "tests of the OpenCL backend will fail: there is no OpenCL driver here"
fi
command -v oclgrind >/dev/null || (apt_install oclgrind) || say "tools/oclgrind.py will fail: there is no Oclgrind here"
"$PYTHON" -c 'import sys; sys.exit(not ((3, 10) <= sys.version_info < (3, 14)))' ||
  fail "$("$PYTHON" --version) does not serve: TensorFlow 2.21 needs Python 3.10 to 3.13 (set PYTHON to one)"
"$PYTHON" -c 'import ensurepip' 2>/dev/null || apt_install python3-venv

# The Python environment, as the requirements say; brought up to date when they change.
for requirements in requirements-dev.txt "$@"; do
  stamp=".venv/$requirements-$(sha256sum "$requirements" | cut -c1-16)"
  [[ ! -e "$stamp" ]] || continue
  say "installing $requirements into .venv ($("$PYTHON" --version)); this takes some minutes the first time"
  [[ -x .venv/bin/python ]] || "$PYTHON" -m venv .venv
  options=()
  [[ "$requirements" != requirements-@(models|search).txt ]] || options=(--no-deps) # they say why
  .venv/bin/python -m pip install --quiet --disable-pip-version-check "${options[@]}" -r "$requirements" ||
    fail "pip could not install $requirements (see above)"
  rm -f ".venv/$requirements"-*
  touch "$stamp"
done
say "ready: $(tools/bazel.sh --which), $(.venv/bin/python --version)"
