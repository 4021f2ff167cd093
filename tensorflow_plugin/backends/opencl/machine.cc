#include "tensorflow_plugin/backends/opencl/machine.h"

#include <utility>

namespace xpu::opencl {
namespace {

// By a marker in a queue of its own.
bool ReadClock(const Hardware& hardware, cl_context context, uint64_t* ns) {
  cl_int error = CL_SUCCESS;
  const Handle<cl_command_queue> queue(
      Cl().CreateCommandQueue(context, hardware.id, CL_QUEUE_PROFILING_ENABLE, &error));
  if (error != CL_SUCCESS) return false;
  cl_event made = nullptr;
  if (Cl().EnqueueMarkerWithWaitList(queue.get(), 0, nullptr, &made) != CL_SUCCESS) return false;
  const Handle<cl_event> marker(made);
  if (Cl().Flush(queue.get()) != CL_SUCCESS || Cl().WaitForEvents(1, &made) != CL_SUCCESS) return false;
  cl_ulong end = 0;
  if (Cl().GetEventProfilingInfo(made, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) != CL_SUCCESS)
    return false;
  *ns = end;
  return true;
}

}  // namespace

Status Machine::Create(const Hardware& hardware, const Memory::Options& memory, std::unique_ptr<Machine>* machine) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(hardware.platform), 0};
  cl_int error = CL_SUCCESS;
  Handle<cl_context> context(Cl().CreateContext(properties, 1, &hardware.id, nullptr, nullptr, &error));
  XPU_RETURN_IF_CL_ERROR(error, "a context on " + hardware.name);
  std::unique_ptr<Machine> made(new Machine(hardware, std::move(context)));
  XPU_RETURN_IF_ERROR(Memory::Create(hardware, made->context(), memory, &made->memory_));
  *machine = std::move(made);
  return OkStatus();
}

Machine::Machine(const Hardware& hardware, Handle<cl_context> context)
    : hardware_(hardware),
      context_(std::move(context)),
      event_times_([this](uint64_t* ns) { return ReadClock(hardware_, context_.get(), ns); }),
      compiler_(hardware, context_.get(), gpu::BinaryCache::UsersFolder("opencl")) {}

Status Machine::MakeTable(const std::vector<int64_t>& numbers, std::shared_ptr<const gpu::Table>* table) {
  cl_int error = CL_SUCCESS;
  Handle<cl_mem> buffer(Cl().CreateBuffer(context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                          numbers.size() * sizeof(int64_t), const_cast<int64_t*>(numbers.data()),
                                          &error));
  XPU_RETURN_IF_CL_ERROR(error, "a table of extents");
  *table = std::make_shared<BufferTable>(std::move(buffer));
  return OkStatus();
}

}  // namespace xpu::opencl
