// A stand-in for libcudnn.so.9. It takes descriptors as strictly as the library: each attribute with its type and
// count, objects that are final, all that a kind needs. A plan that is executed is noted down in the stream's order.
// Its engines are these, the first six from mode A:
//   10  tensor cores                                   no scratch memory
//   11  Fourier's method                               no scratch memory
//   12  tensor cores, for float other sums in each run 1000 bytes
//   13                                                 64 MiB
//   14                                                 makes no plan
//   15                                                 2^40 bytes
//   16                                                 no scratch memory; a fallback
// A graph of several operations has these, all from mode A:
//   20  tensor cores, compiled when the plan is made   no scratch memory
//   21  tensor cores                                   no scratch memory
// The results of such a graph are NaN where images begin with one, and that is not noted down. With a filter of 7
// pixels in a row Relu loses it. None has a convolution with a filter of 13 pixels in a row, and 21 none with one
// of 11.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"
#include "tensorflow_plugin/backends/cuda/tests/stand_in.h"

using namespace xpu::cuda;

namespace {

constexpr int kBadParam = 2000, kNotFinal = 2004, kWrongType = 2010, kNotSupported = 3000, kFailed = 5000;

struct Attribute {
  int type;
  bool is_list;
  bool is_optional = false;
};

// The attributes that may be set of a kind.
const std::map<int, std::map<int, Attribute>>& Kinds() {
  static const auto& kinds = *[] {
    auto* const made = new std::map<int, std::map<int, Attribute>>{
        {kDnnPointwise,
         {{0, {kDnnTypePointwiseMode, false}}, {1, {kDnnTypeNumber, false}}, {2, {kDnnTypeNan, false, true}}}},
        {kDnnPointwiseOperation,
         {{750, {kDnnTypeDescriptor, false}},
          {751, {kDnnTypeDescriptor, false}},
          {752, {kDnnTypeDescriptor, false, true}},
          {753, {kDnnTypeDescriptor, false}}}},
        {kDnnConvolution,
         {{100, {kDnnTypeNumber, false}},
          {101, {kDnnTypeConvolutionMode, false}},
          {102, {kDnnTypeInt64, true}},
          {103, {kDnnTypeInt64, true}},
          {104, {kDnnTypeInt64, true}},
          {105, {kDnnTypeInt64, true}},
          {106, {kDnnTypeInt64, false}}}},
        {kDnnEngine, {}},
        {kDnnEngineConfig, {}},
        {kDnnHeuristics, {{200, {kDnnTypeHeuristic, false}}, {201, {kDnnTypeDescriptor, false}}}},
        {kDnnPlan, {{400, {kDnnTypeHandle, false}}, {401, {kDnnTypeDescriptor, false}}}},
        {kDnnGraph, {{800, {kDnnTypeHandle, false}}, {801, {kDnnTypeDescriptor, true}}}},
        {kDnnVariantPack,
         {{1000, {kDnnTypeInt64, true}}, {1001, {kDnnTypePointer, true}}, {1003, {kDnnTypePointer, false}}}},
        {kDnnTensor,
         {{900, {kDnnTypeInt64, false}},
          {901, {kDnnTypeNumber, false}},
          {902, {kDnnTypeInt64, true}},
          {903, {kDnnTypeInt64, true}},
          {906, {kDnnTypeInt64, false}},
          {907, {kDnnTypeBool, false, true}}}},
    };
    for (const auto& [kind, first] :
         {std::pair<int, int>{kDnnForward, 700}, {kDnnDataGradient, 706}, {kDnnFilterGradient, 712}}) {
      std::map<int, Attribute>& attributes = (*made)[kind];
      for (int i = 0; i < 6; ++i) attributes[first + i] = {i < 2 ? kDnnTypeFloat : kDnnTypeDescriptor, false};
    }
    return made;
  }();
  return kinds;
}

size_t SizeOfType(int type) {
  switch (type) {
    case kDnnTypeBool:
      return 1;
    case kDnnTypeHandle:
    case kDnnTypeInt64:
    case kDnnTypeDouble:
    case kDnnTypePointer:
    case kDnnTypeDescriptor:
      return 8;
    default:
      return 4;
  }
}

struct Engine {
  int64_t index;
  std::vector<int> notes;
  int64_t bytes;
  std::vector<int> behavior = {};
};
const std::vector<Engine>& Engines() {
  static const auto& engines = *new std::vector<Engine>{{10, {kDnnTensorCores}, 0},
                                                        {11, {kDnnFft}, 0},
                                                        {12, {kDnnNondeterministic}, 1000},
                                                        {13, {}, int64_t{64} << 20},
                                                        {14, {}, 0},
                                                        {15, {}, int64_t{1} << 40},
                                                        {16, {}, 0},
                                                        {20, {kDnnTensorCores}, 0, {kDnnCompiledAtRuntime}},
                                                        {21, {kDnnTensorCores}, 0}};
  return engines;
}

struct Descriptor {
  int kind = 0;
  bool is_final = false;
  std::map<int, std::string> values;  // their bytes
  int engine = -1;                    // of an engine or a configuration: its place
  std::string text;                   // of an operation, a graph, a configuration and a plan
  int pixels = 0;                     // of the filter, in the longest row
  bool is_fused = false;              // the graph has several operations
  std::vector<int64_t> ids;           // of tensors that have memory
  size_t result_bytes = 0;

  template <typename T>
  std::vector<T> List(int attribute) const {
    const std::string& bytes = values.at(attribute);
    std::vector<T> list(bytes.size() / sizeof(T));
    std::memcpy(list.data(), bytes.data(), bytes.size());
    return list;
  }
  template <typename T>
  T One(int attribute) const {
    return List<T>(attribute).at(0);
  }
  const Descriptor& Object(int attribute) const { return *One<const Descriptor*>(attribute); }
};

struct State {
  std::mutex mutex;
  std::string error;
  std::vector<std::string> executions;
  int execute_error = 0, create_error = 0;
  std::set<Descriptor*> living;
  int handles = 0, plans = 0;
};
State& The() {
  static auto& state = *new State;
  return state;
}

int Fail(int error, const std::string& text) {
  std::lock_guard<std::mutex> lock(The().mutex);
  The().error = text;
  return error;
}

std::string Text(const std::vector<int64_t>& numbers) {
  std::ostringstream out;
  for (size_t i = 0; i < numbers.size(); ++i) out << (i == 0 ? "[" : ",") << numbers[i];
  out << "]";
  return out.str();
}

bool IsVirtual(const Descriptor& tensor) { return tensor.values.count(907) != 0 && tensor.One<char>(907) != 0; }

std::string TensorText(const Descriptor& tensor) {
  return Text(tensor.List<int64_t>(902)) + Text(tensor.List<int64_t>(903));
}

void NoteTensors(std::initializer_list<const Descriptor*> tensors, Descriptor* operation) {
  for (const Descriptor* tensor : tensors) {
    if (!IsVirtual(*tensor)) operation->ids.push_back(tensor->One<int64_t>(906));
  }
}

int FinalizePointwise(Descriptor* operation) {
  const Descriptor &of = operation->Object(750), &first = operation->Object(751), &result = operation->Object(753);
  const bool is_sum = of.One<int>(0) == kDnnAdd;
  if (!is_sum && of.One<int>(0) != kDnnRelu) return Fail(kBadParam, "a mode");
  if (is_sum != (operation->values.count(752) != 0)) return Fail(kBadParam, "a second operand");
  if (!IsVirtual(first) || first.One<int>(901) != kDnnFloat) return Fail(kBadParam, "what comes before");
  if (first.List<int64_t>(902) != result.List<int64_t>(902)) return Fail(kBadParam, "a shape");
  if (!is_sum && of.One<int>(2) != kDnnPropagateNan) return Fail(kBadParam, "NaN");
  operation->text = is_sum ? " add " + TensorText(operation->Object(752)) : " relu";
  NoteTensors({&result}, operation);
  if (is_sum) NoteTensors({&operation->Object(752)}, operation);
  return 0;
}

int FinalizeOperation(Descriptor* operation) {
  const int first = operation->kind == kDnnForward ? 700 : operation->kind == kDnnDataGradient ? 706 : 712;
  const Descriptor &convolution = operation->Object(first + 2), &filter = operation->Object(first + 3),
                   &images = operation->Object(first + 4), &results = operation->Object(first + 5);
  const auto w = filter.List<int64_t>(902), x = images.List<int64_t>(902), y = results.List<int64_t>(902);
  const auto dilations = convolution.List<int64_t>(102), strides = convolution.List<int64_t>(103),
             after = convolution.List<int64_t>(104), before = convolution.List<int64_t>(105);
  const auto rank = static_cast<size_t>(convolution.One<int64_t>(106));
  if (rank < 2 || rank > 3) return Fail(kBadParam, "spatial dimensions");
  for (const auto* list : {&dilations, &strides, &after, &before}) {
    if (list->size() != rank) return Fail(kBadParam, "a list of the convolution");
  }
  for (const auto* shape : {&w, &x, &y}) {
    if (shape->size() != rank + 2) return Fail(kBadParam, "dimensions of a tensor");
  }
  if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] != 0) return Fail(kBadParam, "channels");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t windows = (x[i + 2] + before[i] + after[i] - dilations[i] * (w[i + 2] - 1) - 1) / strides[i] + 1;
    if (windows != y[i + 2]) return Fail(kBadParam, "y's dimension " + std::to_string(i));
    operation->pixels = std::max(operation->pixels, static_cast<int>(w[i + 2]));
  }
  if (operation->One<float>(first) != 1 || operation->One<float>(first + 1) != 0) return Fail(kBadParam, "alpha");
  NoteTensors({&images, &filter, &results}, operation);
  operation->result_bytes = images.One<int>(901) == kDnnFloat ? 4 : 2;
  for (int64_t extent : y) operation->result_bytes *= static_cast<size_t>(extent);
  operation->text = (operation->kind == kDnnForward        ? "forward"
                     : operation->kind == kDnnDataGradient ? "to images"
                                                           : "to filter") +
                    std::string(" x ") + TensorText(images) + " w " + TensorText(filter) + " y " + TensorText(results) +
                    " strides " + Text(strides) + " dilations " + Text(dilations) + " pads " + Text(before) +
                    Text(after) + " number " + std::to_string(images.One<int>(901)) + " sums " +
                    std::to_string(convolution.One<int>(100)) + " alignments " +
                    Text({images.One<int64_t>(900), filter.One<int64_t>(900), results.One<int64_t>(900)});
  return 0;
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

// Returns the executions so far, one a line, and forgets them.
EXPORT const char* StandInDnnExecutions() {
  static std::string text;
  std::lock_guard<std::mutex> lock(The().mutex);
  text.clear();
  for (const std::string& execution : The().executions) text += execution + "\n";
  The().executions.clear();
  return text.c_str();
}
// All calls of cudnnBackendExecute and of cudnnCreate from now on return these.
EXPORT void StandInDnnFail(int execute_error, int create_error) {
  The().execute_error = execute_error;
  The().create_error = create_error;
}
// Handles, descriptors that are there, and plans that have been made.
EXPORT void StandInDnnCounts(int* handles, int* descriptors, int* plans) {
  std::lock_guard<std::mutex> lock(The().mutex);
  *handles = The().handles;
  *descriptors = static_cast<int>(The().living.size());
  *plans = The().plans;
}

#ifdef STAND_IN_VERSION
EXPORT size_t cudnnGetVersion() { return STAND_IN_VERSION; }
#else
EXPORT size_t cudnnGetVersion() { return 91000; }
#endif
EXPORT const char* cudnnGetErrorString(int error) {
  switch (error) {
    case kBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNotFinal:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case kWrongType:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case kFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_NOT_INITIALIZED";
  }
}
EXPORT void cudnnGetLastErrorString(char* text, size_t size) {
  std::lock_guard<std::mutex> lock(The().mutex);
  std::strncpy(text, The().error.c_str(), size - 1);
  The().error.clear();
}
EXPORT int cudnnCreate(DnnHandle* handle) {
  if (The().create_error != 0) return The().create_error;
  *handle = reinterpret_cast<DnnHandle>(new StreamHandle(nullptr));
  std::lock_guard<std::mutex> lock(The().mutex);
  ++The().handles;
  return 0;
}
EXPORT int cudnnDestroy(DnnHandle handle) {
  delete reinterpret_cast<StreamHandle*>(handle);
  std::lock_guard<std::mutex> lock(The().mutex);
  --The().handles;
  return 0;
}
EXPORT int cudnnSetStream(DnnHandle handle, StreamHandle stream) {
  *reinterpret_cast<StreamHandle*>(handle) = stream;
  return 0;
}
EXPORT int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  if (Kinds().count(kind) == 0) return Fail(kNotSupported, "a kind");
  auto* const made = new Descriptor;
  made->kind = kind;
  *descriptor = made;
  std::lock_guard<std::mutex> lock(The().mutex);
  The().living.insert(made);
  return 0;
}
EXPORT int cudnnBackendDestroyDescriptor(void* descriptor) {
  auto* const that = static_cast<Descriptor*>(descriptor);
  {
    std::lock_guard<std::mutex> lock(The().mutex);
    if (The().living.erase(that) == 0) return kBadParam;
  }
  delete that;
  return 0;
}
EXPORT int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count, const void* values) {
  auto* const that = static_cast<Descriptor*>(descriptor);
  const auto& attributes = Kinds().at(that->kind);
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return Fail(kBadParam, "an attribute that the kind has not");
  if (that->is_final) return Fail(kBadParam, "an attribute of what is final");
  if (type != found->second.type && !(type == kDnnTypeDouble && found->second.type == kDnnTypeFloat)) {
    return Fail(kWrongType, "a type");
  }
  if (count < 1 || (!found->second.is_list && count != 1)) return Fail(kBadParam, "a count");
  if (type == kDnnTypeDescriptor) {
    for (int64_t i = 0; i < count; ++i) {
      if (!static_cast<Descriptor* const*>(values)[i]->is_final) return Fail(kNotFinal, "an object");
    }
  }
  if (type == kDnnTypeDouble) {  // stands for itself in this library
    const auto number = static_cast<float>(*static_cast<const double*>(values));
    that->values[attribute].assign(reinterpret_cast<const char*>(&number), sizeof(number));
    return 0;
  }
  that->values[attribute].assign(static_cast<const char*>(values), static_cast<size_t>(count) * SizeOfType(type));
  return 0;
}
EXPORT int cudnnBackendFinalize(void* descriptor) {
  auto* const that = static_cast<Descriptor*>(descriptor);
  for (const auto& [attribute, about] : Kinds().at(that->kind)) {
    if (!about.is_optional && that->values.count(attribute) == 0)
      return Fail(kBadParam, "without attribute " + std::to_string(attribute));
  }
  switch (that->kind) {
    case kDnnTensor:
      if (that->List<int64_t>(902).size() != that->List<int64_t>(903).size()) return Fail(kBadParam, "strides");
      break;
    case kDnnForward:
    case kDnnDataGradient:
    case kDnnFilterGradient:
      if (const int error = FinalizeOperation(that); error != 0) return error;
      break;
    case kDnnPointwiseOperation:
      if (const int error = FinalizePointwise(that); error != 0) return error;
      break;
    case kDnnGraph: {
      const auto operations = that->List<const Descriptor*>(801);
      for (const Descriptor* operation : operations) {
        that->text += operation->text;
        that->pixels = std::max(that->pixels, operation->pixels);
        that->result_bytes = std::max(that->result_bytes, operation->result_bytes);
        that->ids.insert(that->ids.end(), operation->ids.begin(), operation->ids.end());
      }
      std::sort(that->ids.begin(), that->ids.end());
      that->is_fused = operations.size() > 1;
      break;
    }
    case kDnnPlan: {
      const Descriptor& config = that->Object(401);
      if (Engines()[static_cast<size_t>(config.engine)].index == 14) return Fail(kNotSupported, "no engine 14");
      that->engine = config.engine;
      that->text = config.text;
      that->ids = config.ids;
      that->is_fused = config.is_fused;
      that->pixels = config.pixels;
      that->result_bytes = config.result_bytes;
      std::lock_guard<std::mutex> lock(The().mutex);
      ++The().plans;
      break;
    }
    case kDnnVariantPack:
      if (that->List<void*>(1001).size() != that->List<int64_t>(1000).size()) return Fail(kBadParam, "pointers");
      break;
    default:
      break;
  }
  that->is_final = true;
  return 0;
}
EXPORT int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, int64_t most, int64_t* count,
                                    void* values) {
  const auto* const that = static_cast<const Descriptor*>(descriptor);
  const std::vector<Engine>& engines = Engines();
  if (!that->is_final) return Fail(kNotFinal, "what is read");
  const auto is = [&](int kind, int of, int its_type) {
    return that->kind == kind && attribute == of && type == its_type;
  };
  if (is(kDnnHeuristics, 202, kDnnTypeDescriptor)) {
    const bool is_fallback = that->One<int>(200) == kDnnFallback;
    const Descriptor& graph = that->Object(201);
    size_t first = is_fallback ? 6 : 0, end = is_fallback ? 7 : 6;
    if (graph.is_fused) {
      first = 7;
      end = is_fallback ? 7 : graph.pixels == 11 ? 8 : 9;
    }
    // The library promises more than it has.
    *count = static_cast<int64_t>(end - first) + 5;
    if (most == 0) return 0;
    *count = graph.pixels != 13 ? std::min<int64_t>(most, static_cast<int64_t>(end - first)) : 0;
    for (int64_t i = 0; i < *count; ++i) {
      Descriptor* const config = static_cast<Descriptor**>(values)[i];
      if (config->kind != kDnnEngineConfig) return Fail(kBadParam, "a result");
      config->engine = static_cast<int>(first) + static_cast<int>(i);
      config->text = graph.text;
      config->ids = graph.ids;
      config->is_fused = graph.is_fused;
      config->pixels = graph.pixels;
      config->result_bytes = graph.result_bytes;
      config->is_final = true;
    }
    return 0;
  }
  *count = 1;
  if (is(kDnnEngineConfig, 300, kDnnTypeDescriptor)) {
    Descriptor* const engine = *static_cast<Descriptor**>(values);
    if (engine->kind != kDnnEngine) return Fail(kBadParam, "an engine");
    engine->engine = that->engine;
    engine->is_final = true;
    return 0;
  }
  if (is(kDnnEngine, 1301, kDnnTypeInt64)) {
    *static_cast<int64_t*>(values) = engines[static_cast<size_t>(that->engine)].index;
    return 0;
  }
  if (is(kDnnEngine, 1303, kDnnTypeNote) || is(kDnnEngine, 1305, kDnnTypeBehavior)) {
    const Engine& engine = engines[static_cast<size_t>(that->engine)];
    const std::vector<int>& notes = attribute == 1303 ? engine.notes : engine.behavior;
    *count = static_cast<int64_t>(notes.size());
    std::copy(notes.begin(), notes.end(), static_cast<int*>(values));
    return 0;
  }
  if (is(kDnnPlan, 402, kDnnTypeInt64)) {
    *static_cast<int64_t*>(values) = engines[static_cast<size_t>(that->engine)].bytes;
    return 0;
  }
  return Fail(kBadParam, "what is not to be read");
}
EXPORT int cudnnBackendExecute(DnnHandle handle, void* plan, void* pack) {
  const auto& the_plan = *static_cast<const Descriptor*>(plan);
  const auto& the_pack = *static_cast<const Descriptor*>(pack);
  if (!the_plan.is_final || the_plan.kind != kDnnPlan) return Fail(kNotFinal, "a plan");
  if (!the_pack.is_final || the_pack.kind != kDnnVariantPack) return Fail(kNotFinal, "a pack");
  if (the_pack.List<int64_t>(1000) != the_plan.ids) return Fail(kBadParam, "ids");
  if (The().execute_error != 0) return Fail(The().execute_error, "a launch failed");
  std::ostringstream text;
  text << "engine " << Engines()[static_cast<size_t>(the_plan.engine)].index << " " << the_plan.text;
  for (void* pointer : the_pack.List<void*>(1001)) text << " " << pointer;
  text << " " << the_pack.One<void*>(1003);
  using Launch = Result(StreamHandle, void (*)(void*), void*);
  using Launches = int(StandInLaunch*, int);
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  static auto* const launch = reinterpret_cast<Launch*>(dlsym(driver, "cuLaunchHostFunc"));
  static auto* const launches = reinterpret_cast<Launches*>(dlsym(driver, "StandInLaunches"));
  struct Execution {
    std::string text;
    bool is_fused, loses_nan;
    void *images, *results;
    size_t bytes;
  };
  const auto pointers = the_pack.List<void*>(1001);
  // A graph runs it often: the data stay.
  static auto& executions = *new std::deque<Execution>;
  Execution* kept = nullptr;
  {
    std::lock_guard<std::mutex> lock(The().mutex);
    kept = &executions.emplace_back(Execution{text.str(), the_plan.is_fused, the_plan.pixels == 7, pointers[0],
                                              pointers[2], the_plan.result_bytes});
  }
  return launch(
      *reinterpret_cast<StreamHandle*>(handle),
      [](void* data) {
        const auto& run = *static_cast<const Execution*>(data);
        const int before = launches(nullptr, 0);
        if (run.is_fused && std::memcmp(run.images, "\xff\xff\xff\xff", 4) == 0) {
          std::memset(run.results, run.loses_nan ? 0 : 0xff, run.bytes);
          return;
        }
        std::lock_guard<std::mutex> lock(The().mutex);
        The().executions.push_back(run.text + " behind " + std::to_string(before));
      },
      kept);
}

}  // extern "C"
