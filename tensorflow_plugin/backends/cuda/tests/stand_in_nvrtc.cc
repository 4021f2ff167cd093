// A stand-in for libnvrtc.so.13: what it compiles are images of one word. A source with "no_such_thing" does not
// compile. The folder that STAND_IN_NVRTC_SOURCES names gets each source, in a file named by the source's hash
// (tools/compile_kernels.py).
//
// STAND_IN_KERNELS names a folder for kernels that the processor runs. Then sources are compiled by g++, behind the
// file STAND_IN_PRELUDE (host_kernel.h), each once. Such an image is the name of a shared library: see
// stand_in_driver.cc.
//
// Preloaded, it is opened instead of the NVRTC of an installed package.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

namespace {

// Another process or thread may write the same file: each has a name of its own.
std::string PartOf(const std::string& path) {
  static std::atomic<int> counter{0};
  return path + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
}

void Keep(const std::string& source) {
  const char* const folder = std::getenv("STAND_IN_NVRTC_SOURCES");
  if (folder == nullptr) return;
  const std::string path = folder + ("/" + std::to_string(std::hash<std::string>()(source))) + ".cu";
  const std::string part = PartOf(path);
  std::ofstream(part) << source;
  if (std::rename(part.c_str(), path.c_str()) != 0) std::perror(path.c_str());
}

struct Program {
  std::string source, image = "image", log = "no such thing.";
};

void Replace(std::string* text, const std::string& from, const std::string& to) {
  const size_t at = text->find(from);
  if (at != std::string::npos) text->replace(at, from.size(), to);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The source for g++.
std::string ForHost(std::string source) {
  Replace(&source, R"(asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));)", "x = StandInFromHalf(bits);");
  Replace(&source, R"(asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));)", "bits = StandInToHalf(x);");
  // Behind the one of the prelude.
  const bool has_barriers = source.find("barrier(", source.find("__syncthreads")) != std::string::npos;
  return "#define STAND_IN_HAS_BARRIERS " + std::to_string(has_barriers) + "\n#include \"" +
         std::getenv("STAND_IN_PRELUDE") + "\"\n" + source + "\nSTAND_IN_ENTRY\n";
}

// 0 if there is a shared library of it, then or from an earlier time.
int CompileForHost(const std::string& folder, Program* program) {
  const std::string source = ForHost(program->source);
  // The compiler and the prelude make a difference, too.
  const size_t hash = std::hash<std::string>()(__VERSION__ + Contents(std::getenv("STAND_IN_PRELUDE")) + source);
  const std::string path = folder + "/" + std::to_string(hash) + ".so";
  program->image = path;
  if (access(path.c_str(), R_OK) == 0) return 0;
  const std::string part = PartOf(path);
  std::ofstream(part + ".cc") << source;
  const std::string command = "g++ -std=c++17 -O1 -w -fpermissive -fwrapv -ffp-contract=off -shared -fPIC " + part +
                              ".cc -o " + part + " > " + part + ".log 2>&1 && mv " + part + " " + path + " && rm " +
                              part + ".*";
  if (std::system(command.c_str()) == 0) return 0;
  program->log = Contents(part + ".log");
  return 6;
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT void* dlopen(const char* name, int flags) noexcept {
  static auto* const open = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  Dl_info own{};
  const char* const file = name == nullptr ? nullptr : std::strrchr(name, '/');
  const bool is_nvrtc = file != nullptr && std::strcmp(file, "/libnvrtc.so.13") == 0;
  if (is_nvrtc && dladdr(reinterpret_cast<const void*>(&Keep), &own) != 0) name = own.dli_fname;
  return open(name, flags);
}

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
  *program = new Program{source};
  return 0;
}
EXPORT int nvrtcCompileProgram(void* program, int, const char* const*) {
  auto* const that = static_cast<Program*>(program);
  if (that->source.find("no_such_thing") != std::string::npos) return 6;
  const char* const folder = std::getenv("STAND_IN_KERNELS");
  return folder == nullptr ? 0 : CompileForHost(folder, that);
}
EXPORT int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
EXPORT int nvrtcGetCUBINSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->image.size() + 1;
  return 0;
}
EXPORT int nvrtcGetCUBIN(void* program, char* cubin) {
  const std::string& image = static_cast<Program*>(program)->image;
  std::memcpy(cubin, image.c_str(), image.size() + 1);
  return 0;
}
EXPORT int nvrtcGetPTXSize(void* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
EXPORT int nvrtcGetPTX(void* program, char* ptx) { return nvrtcGetCUBIN(program, ptx); }
EXPORT int nvrtcGetProgramLogSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(void* program, char* log) {
  const std::string& text = static_cast<Program*>(program)->log;
  std::memcpy(log, text.c_str(), text.size() + 1);
  return 0;
}

}  // extern "C"
