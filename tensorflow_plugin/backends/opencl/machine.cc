#include "tensorflow_plugin/backends/opencl/machine.h"

#include <algorithm>
#include <utility>

#include "tensorflow_plugin/backends/opencl/sources.h"

namespace xpu::opencl {
namespace {

// Tables that are kept: more than the shapes of a model, less than memory that anybody would miss.
constexpr size_t kMaxTables = 4096;

constexpr uint32_t kNothing = UINT32_MAX;  // reported

}  // namespace

Status Machine::Create(const Hardware& hardware, const Memory::Options& memory, std::unique_ptr<Machine>* machine) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(hardware.platform), 0};
  cl_int error = CL_SUCCESS;
  Handle<cl_context> context(Cl().CreateContext(properties, 1, &hardware.id, nullptr, nullptr, &error));
  XPU_RETURN_IF_CL_ERROR(error, "a context on " + hardware.name);
  std::unique_ptr<Machine> made(new Machine(hardware, std::move(context)));
  XPU_RETURN_IF_ERROR(Memory::Create(hardware, made->context(), memory, &made->memory_));
  made->compiler_ = std::make_unique<Compiler>(hardware, made->context(), BinaryCache::UsersFolder());
  made->tiles_ = std::make_unique<TileSearch>(*made->compiler_);
  *machine = std::move(made);
  return OkStatus();
}

Status Machine::Table(const std::vector<int64_t>& numbers, std::shared_ptr<Handle<cl_mem>>* table) {
  std::lock_guard<std::mutex> lock(tables_mutex_);
  if (tables_.size() >= kMaxTables) tables_.clear();
  std::shared_ptr<Handle<cl_mem>>& found = tables_[numbers];
  if (found == nullptr) {
    cl_int error = CL_SUCCESS;
    auto made = std::make_shared<Handle<cl_mem>>(Cl().CreateBuffer(context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                                                   numbers.size() * sizeof(int64_t),
                                                                   const_cast<int64_t*>(numbers.data()), &error));
    XPU_RETURN_IF_CL_ERROR(error, "a table of extents");
    found = std::move(made);
  }
  *table = found;
  return OkStatus();
}

Call::Call(Machine& machine, Queue& queue, const std::string& key, const std::function<std::string()>& source)
    : machine_(machine), queue_(queue) {
  status_ = machine.compiler().Get(key, [&] { return kPrelude + source(); }, &kernel_);
  if (!status_.ok()) return;
  lock_ = std::unique_lock<std::mutex>(kernel_->mutex);
  group_ = std::min(kGroup, kernel_->largest_group);
}

Call::~Call() = default;

Call& Call::Argument(size_t size, const void* value) {
  if (!status_.ok()) return *this;
  status_ = ToStatus(Cl().SetKernelArg(kernel_->kernel.get(), arguments_, size, value),
                     errors::Concat("argument ", arguments_, " of a kernel"));
  ++arguments_;
  return *this;
}

Call& Call::Memory(const void* address) {
  MemorySlice place;
  if (status_.ok() && address != nullptr) status_ = machine_.memory().Locate(address, 0, &place);
  return At(place);
}

Call& Call::At(const MemorySlice& place) {
  Argument(sizeof(place.buffer), place.buffer == nullptr ? nullptr : &place.buffer);
  return Value(static_cast<cl_ulong>(place.offset));
}

Call& Call::Table(const std::vector<int64_t>& numbers) {
  if (!status_.ok()) return *this;
  std::shared_ptr<Handle<cl_mem>> table;
  status_ = machine_.Table(numbers, &table);
  if (!status_.ok()) return *this;
  const cl_mem buffer = table->get();
  tables_.push_back(std::move(table));  // until the command is enqueued; then the driver keeps it
  return Argument(sizeof(buffer), &buffer);
}

Call& Call::Report() {
  if (status_.ok()) status_ = queue_.NewReport(kNothing, &report_);
  return At(report_);
}

Status Call::Enqueue(cl_uint axes, const size_t* global, const size_t* local, Handle<cl_event>* kept) {
  XPU_RETURN_IF_ERROR(status_);
  return queue_.Submit(
      "a kernel",
      [&](cl_command_queue queue, cl_event* event) {
        return Cl().EnqueueNDRangeKernel(queue, kernel_->kernel.get(), axes, nullptr, global, local, 0, nullptr, event);
      },
      kept);
}

Status Call::Run(int64_t items) {
  const size_t global = (static_cast<size_t>(items) + group_ - 1) / group_ * group_;
  return Enqueue(1, &global, &group_);
}

Status Call::RunGroups(const size_t groups[3], const size_t local[3], Handle<cl_event>* event) {
  const size_t global[] = {groups[0] * local[0], groups[1] * local[1], groups[2] * local[2]};
  return Enqueue(3, global, local, event);
}

Status Call::RunChecked(int64_t items, const Args& args, Judge judge) {
  XPU_RETURN_IF_ERROR(Run(items));
  return Check(args, std::move(judge));
}

Status Call::Check(const Args& args, Judge judge) {
  lock_.unlock();
  if (args.status != nullptr) {
    uint32_t number = kNothing;
    XPU_RETURN_IF_ERROR(queue_.ReadReport(report_, &number, /*wait=*/true));
    if (number != kNothing) *args.status = judge(number);
    return OkStatus();
  }
  auto number = std::make_shared<uint32_t>(kNothing);
  XPU_RETURN_IF_ERROR(queue_.ReadReport(report_, number.get(), /*wait=*/false));
  queue_.HostCallback([number, judge = std::move(judge)] { return *number == kNothing ? OkStatus() : judge(*number); });
  return OkStatus();
}

}  // namespace xpu::opencl
