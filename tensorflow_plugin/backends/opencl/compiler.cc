#include "tensorflow_plugin/backends/opencl/compiler.h"

#include "tensorflow_plugin/backends/gpu/codegen/sources.h"

namespace xpu::opencl {
namespace {

std::string OptionsFor(const Hardware& hardware) {
  // Without warnings, which some drivers print on stderr.
  return std::string("-cl-std=CL1.2 -w") + (hardware.rounds_correctly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

std::string LogOf(cl_program program, cl_device_id device) {
  size_t size = 0;
  Cl().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  if (size <= 1) return "";
  std::string log(size, '\0');
  if (Cl().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr) != CL_SUCCESS) {
    return "";
  }
  log.resize(size - 1);
  return log;
}

std::string BinaryOf(cl_program program) {
  size_t size = 0;
  if (Cl().GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) != CL_SUCCESS) return "";
  std::string binary(size, '\0');
  auto* to = reinterpret_cast<unsigned char*>(binary.data());
  const bool read =
      size != 0 && Cl().GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(to), &to, nullptr) == CL_SUCCESS;
  return read ? binary : "";
}

}  // namespace

Handle<cl_program> Compiler::BuildFromBinary(const std::string& binary, const std::string& options) {
  if (binary.empty()) return {};
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int state = CL_SUCCESS, error = CL_SUCCESS;
  Handle<cl_program> program(Cl().CreateProgramWithBinary(context_, 1, &hardware_.id, &size, &bytes, &state, &error));
  if (error != CL_SUCCESS || state != CL_SUCCESS) return {};
  error = Cl().BuildProgram(program.get(), 1, &hardware_.id, options.c_str(), nullptr, nullptr);
  return error == CL_SUCCESS ? std::move(program) : Handle<cl_program>();
}

Status Compiler::Build(const std::string& source, const std::string& options, Handle<cl_program>* program) {
  const char* text = source.c_str();
  const size_t length = source.size();
  cl_int error = CL_SUCCESS;
  *program = Handle<cl_program>(Cl().CreateProgramWithSource(context_, 1, &text, &length, &error));
  XPU_RETURN_IF_CL_ERROR(error, "a program for " + hardware_.name);
  error = Cl().BuildProgram(program->get(), 1, &hardware_.id, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return OkStatus();
  const std::string log = LogOf(program->get(), hardware_.id);
  return errors::Internal("the OpenCL compiler of ", hardware_.name, " (driver ", hardware_.driver_version,
                          ") failed with ", ErrorName(error), ". The source ",
                          gpu::WriteUncompiled(source, options, log));
}

Status Compiler::Compile(const std::string& body, std::unique_ptr<gpu::Kernel>* kernel) {
  const std::string source = gpu::kOpenclPrelude + body;
  const std::string options = OptionsFor(hardware_);
  const std::string key = Device() + "\n" + options + "\n" + source;
  Handle<cl_program> program = BuildFromBinary(cache().Load(key), options);
  if (!program) {
    XPU_RETURN_IF_ERROR(Build(source, options, &program));
    const std::string binary = BinaryOf(program.get());
    cache().Store(key, binary);
    // PoCL compiles a program from source again for each kind of size that it is run with, half a second each. It takes
    // one from a binary as it is, and that is as fast.
    Handle<cl_program> again = hardware_.is_processor ? BuildFromBinary(binary, options) : Handle<cl_program>();
    if (again) program = std::move(again);
  }
  cl_int error = CL_SUCCESS;
  auto made = std::make_unique<Kernel>();
  made->kernel = Handle<cl_kernel>(Cl().CreateKernel(program.get(), kKernelName, &error));
  XPU_RETURN_IF_CL_ERROR(error, "a kernel for " + hardware_.name);
  XPU_RETURN_IF_CL_ERROR(Cl().GetKernelWorkGroupInfo(made->kernel.get(), hardware_.id, CL_KERNEL_WORK_GROUP_SIZE,
                                                     sizeof(made->largest_group), &made->largest_group, nullptr),
                         "the size of a kernel's groups on " + hardware_.name);
  *kernel = std::move(made);
  return OkStatus();
}

}  // namespace xpu::opencl
