#include "tensorflow_plugin/backends/opencl/driver.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace xpu::opencl {
namespace {

// The names under which ICD loaders are installed: the one with its version needs no development package.
constexpr const char* kLibraries[] = {"libOpenCL.so.1", "libOpenCL.so"};

struct Found {
  Driver driver;
  std::string why;  // there is none; empty: there is
};

#if defined(__SANITIZE_ADDRESS__)
constexpr int kDeepBind = 0;  // the sanitizer replaces malloc, and forbids what would not see that
#else
constexpr int kDeepBind = RTLD_DEEPBIND;
#endif

// The files that ICD loaders read, which name a driver's library each.
std::vector<std::string> DriverLibraries() {
  std::string folder = "/etc/OpenCL/vendors";
  for (const char* variable : {"OPENCL_VENDOR_PATH", "OCL_ICD_VENDORS"}) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && *value != '\0') folder = value;
  }
  std::vector<std::string> files, libraries;
  if (DIR* const opened = opendir(folder.c_str())) {
    while (const dirent* const entry = readdir(opened)) files.push_back(folder + "/" + entry->d_name);
    closedir(opened);
  } else {
    files.push_back(folder);
  }
  for (const std::string& file : files) {
    std::string library;
    if (file.size() > 4 && file.compare(file.size() - 4, 4, ".icd") == 0 &&
        std::getline(std::ifstream(file), library)) {
      libraries.push_back(library);
    }
  }
  return libraries;
}

Found Open() {
  Found found;
  // Drivers bring an LLVM of their own, and TensorFlow has another one among the symbols that everybody sees. A driver
  // that is bound to that one crashes. Opened so before the loader opens it, it has its own. If one cannot be opened
  // here, the loader will not open it either; a driver is never closed.
  for (const std::string& driver : DriverLibraries()) dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL | kDeepBind);
  void* library = nullptr;
  for (const char* name : kLibraries) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    found.why =
        "there is no OpenCL on this machine: libOpenCL.so.1, the loader of OpenCL drivers, was not found "
        "(Debian and Ubuntu: apt-get install ocl-icd-libopencl1, and the driver of the device)";
    return found;
  }
#define XPU_RESOLVE(name)                                                                           \
  found.driver.name = reinterpret_cast<decltype(found.driver.name)>(dlsym(library, "cl" #name));    \
  if (found.driver.name == nullptr && found.why.empty()) {                                          \
    found.why = "libOpenCL.so.1 lacks cl" #name ", which OpenCL 1.2 has: a newer loader is needed"; \
  }
  XPU_OPENCL_FUNCTIONS(XPU_RESOLVE)
#undef XPU_RESOLVE
  return found;
}

const Found& TheDriver() {
  static const auto* const found = new Found(Open());
  return *found;
}

struct Named {
  cl_int error;
  const char* name;
};
#define XPU_NAMED(name) {name, #name}
constexpr Named kErrors[] = {
    XPU_NAMED(CL_SUCCESS),
    XPU_NAMED(CL_DEVICE_NOT_FOUND),
    XPU_NAMED(CL_DEVICE_NOT_AVAILABLE),
    XPU_NAMED(CL_COMPILER_NOT_AVAILABLE),
    XPU_NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    XPU_NAMED(CL_OUT_OF_RESOURCES),
    XPU_NAMED(CL_OUT_OF_HOST_MEMORY),
    XPU_NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
    XPU_NAMED(CL_MEM_COPY_OVERLAP),
    XPU_NAMED(CL_BUILD_PROGRAM_FAILURE),
    XPU_NAMED(CL_MAP_FAILURE),
    XPU_NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    XPU_NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    XPU_NAMED(CL_COMPILE_PROGRAM_FAILURE),
    XPU_NAMED(CL_LINKER_NOT_AVAILABLE),
    XPU_NAMED(CL_LINK_PROGRAM_FAILURE),
    XPU_NAMED(CL_INVALID_VALUE),
    XPU_NAMED(CL_INVALID_DEVICE_TYPE),
    XPU_NAMED(CL_INVALID_PLATFORM),
    XPU_NAMED(CL_INVALID_DEVICE),
    XPU_NAMED(CL_INVALID_CONTEXT),
    XPU_NAMED(CL_INVALID_QUEUE_PROPERTIES),
    XPU_NAMED(CL_INVALID_COMMAND_QUEUE),
    XPU_NAMED(CL_INVALID_HOST_PTR),
    XPU_NAMED(CL_INVALID_MEM_OBJECT),
    XPU_NAMED(CL_INVALID_BINARY),
    XPU_NAMED(CL_INVALID_BUILD_OPTIONS),
    XPU_NAMED(CL_INVALID_PROGRAM),
    XPU_NAMED(CL_INVALID_PROGRAM_EXECUTABLE),
    XPU_NAMED(CL_INVALID_KERNEL_NAME),
    XPU_NAMED(CL_INVALID_KERNEL_DEFINITION),
    XPU_NAMED(CL_INVALID_KERNEL),
    XPU_NAMED(CL_INVALID_ARG_INDEX),
    XPU_NAMED(CL_INVALID_ARG_VALUE),
    XPU_NAMED(CL_INVALID_ARG_SIZE),
    XPU_NAMED(CL_INVALID_KERNEL_ARGS),
    XPU_NAMED(CL_INVALID_WORK_DIMENSION),
    XPU_NAMED(CL_INVALID_WORK_GROUP_SIZE),
    XPU_NAMED(CL_INVALID_WORK_ITEM_SIZE),
    XPU_NAMED(CL_INVALID_GLOBAL_OFFSET),
    XPU_NAMED(CL_INVALID_EVENT_WAIT_LIST),
    XPU_NAMED(CL_INVALID_EVENT),
    XPU_NAMED(CL_INVALID_OPERATION),
    XPU_NAMED(CL_INVALID_BUFFER_SIZE),
    XPU_NAMED(CL_INVALID_GLOBAL_WORK_SIZE),
    XPU_NAMED(CL_INVALID_PROPERTY),
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};
#undef XPU_NAMED

}  // namespace

const Driver* FindDriver(std::string* why) {
  const Found& found = TheDriver();
  if (why != nullptr) *why = found.why;
  return found.why.empty() ? &found.driver : nullptr;
}

const Driver& Cl() { return TheDriver().driver; }

std::string ErrorName(cl_int error) {
  for (const Named& named : kErrors) {
    if (named.error == error) return named.name;
  }
  return errors::Concat("OpenCL error ", error);
}

Status ToStatus(cl_int error, const std::string& what) {
  if (error == CL_SUCCESS) return OkStatus();
  const std::string message = what + " failed with " + ErrorName(error);
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
      return errors::ResourceExhausted(message);
    default:
      return errors::Internal(message);
  }
}

}  // namespace xpu::opencl
