// A stand-in for libnvrtc.so.13: what it compiles are images of one word. A source with "no_such_thing" does not
// compile. The folder that STAND_IN_NVRTC_SOURCES names gets each source, in a file named by the source's hash
// (tools/compile_cuda.py).
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

namespace {

void Keep(const std::string& source) {
  const char* const folder = std::getenv("STAND_IN_NVRTC_SOURCES");
  if (folder == nullptr) return;
  // Other processes may write the same source.
  const std::string path = folder + ("/" + std::to_string(std::hash<std::string>()(source))) + ".cu";
  const std::string part = path + "." + std::to_string(getpid());
  std::ofstream(part) << source;
  if (std::rename(part.c_str(), path.c_str()) != 0) std::perror(path.c_str());
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return 0;
}
EXPORT int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 75;
  archs[1] = 120;
  return 0;
}
EXPORT int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                              const char* const*) {
  Keep(source);
  *program = new std::string(source);
  return 0;
}
EXPORT int nvrtcCompileProgram(void* program, int, const char* const*) {
  return static_cast<std::string*>(program)->find("no_such_thing") != std::string::npos ? 6 : 0;
}
EXPORT int nvrtcDestroyProgram(void** program) {
  delete static_cast<std::string*>(*program);
  return 0;
}
EXPORT int nvrtcGetCUBINSize(void*, size_t* size) {
  *size = 6;
  return 0;
}
EXPORT int nvrtcGetCUBIN(void*, char* cubin) {
  std::memcpy(cubin, "image", 6);
  return 0;
}
EXPORT int nvrtcGetPTXSize(void* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
EXPORT int nvrtcGetPTX(void* program, char* ptx) { return nvrtcGetCUBIN(program, ptx); }
EXPORT int nvrtcGetProgramLogSize(void*, size_t* size) {
  *size = 15;
  return 0;
}
EXPORT int nvrtcGetProgramLog(void*, char* log) {
  std::memcpy(log, "no such thing.", 15);
  return 0;
}

}  // extern "C"
