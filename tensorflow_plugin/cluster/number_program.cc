#include "tensorflow_plugin/cluster/number_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

using Operation = void (*)(const Number&, const Number&, Number*);

template <typename T>
const T& Get(const Number& number) {
  return *reinterpret_cast<const T*>(&number);
}
template <typename T>
T& Get(Number* number) {
  return *reinterpret_cast<T*>(number);
}

// The type in which sums of T wrap around as TensorFlow's do.
template <typename T, bool kIsInteger>
struct Wrapping {
  using Type = std::make_unsigned_t<T>;
};
template <typename T>
struct Wrapping<T, false> {
  using Type = T;
};

template <typename T>
Operation FindOfNumbers(const std::string& op) {
  using W = typename Wrapping<T, std::is_integral_v<T>>::Type;
  if (op == "Add" || op == "AddV2") {
    return [](const Number& a, const Number& b, Number* r) {
      Get<T>(r) = static_cast<T>(static_cast<W>(Get<T>(a)) + static_cast<W>(Get<T>(b)));
    };
  }
  if (op == "Sub") {
    return [](const Number& a, const Number& b, Number* r) {
      Get<T>(r) = static_cast<T>(static_cast<W>(Get<T>(a)) - static_cast<W>(Get<T>(b)));
    };
  }
  if (op == "Mul") {
    return [](const Number& a, const Number& b, Number* r) {
      Get<T>(r) = static_cast<T>(static_cast<W>(Get<T>(a)) * static_cast<W>(Get<T>(b)));
    };
  }
  if (std::is_integral_v<T> && op == "Neg") {
    return
        [](const Number& a, const Number&, Number* r) { Get<T>(r) = static_cast<T>(W{0} - static_cast<W>(Get<T>(a))); };
  }
  if (std::is_integral_v<T> && op == "Maximum") {
    return [](const Number& a, const Number& b, Number* r) { Get<T>(r) = std::max(Get<T>(a), Get<T>(b)); };
  }
  if (std::is_integral_v<T> && op == "Minimum") {
    return [](const Number& a, const Number& b, Number* r) { Get<T>(r) = std::min(Get<T>(a), Get<T>(b)); };
  }
  if (op == "Less") {
    return [](const Number& a, const Number& b, Number* r) { r->b = Get<T>(a) < Get<T>(b); };
  }
  if (op == "LessEqual") {
    return [](const Number& a, const Number& b, Number* r) { r->b = Get<T>(a) <= Get<T>(b); };
  }
  if (op == "Greater") {
    return [](const Number& a, const Number& b, Number* r) { r->b = Get<T>(a) > Get<T>(b); };
  }
  if (op == "GreaterEqual") {
    return [](const Number& a, const Number& b, Number* r) { r->b = Get<T>(a) >= Get<T>(b); };
  }
  if (op == "Equal") {
    return [](const Number& a, const Number& b, Number* r) { r->b = Get<T>(a) == Get<T>(b); };
  }
  if (op == "NotEqual") {
    return [](const Number& a, const Number& b, Number* r) { r->b = Get<T>(a) != Get<T>(b); };
  }
  return nullptr;
}

Operation FindOfBools(const std::string& op) {
  if (op == "LogicalAnd") return [](const Number& a, const Number& b, Number* r) { r->b = a.b && b.b; };
  if (op == "LogicalOr") return [](const Number& a, const Number& b, Number* r) { r->b = a.b || b.b; };
  if (op == "LogicalNot") return [](const Number& a, const Number&, Number* r) { r->b = !a.b; };
  if (op == "Equal") return [](const Number& a, const Number& b, Number* r) { r->b = a.b == b.b; };
  if (op == "NotEqual") return [](const Number& a, const Number& b, Number* r) { r->b = a.b != b.b; };
  return nullptr;
}

template <typename From, typename To>
Operation Convert() {
  return [](const Number& a, const Number&, Number* r) {
    const To value = static_cast<To>(Get<From>(a));
    *r = Number{};
    Get<To>(r) = value;
  };
}

// No floating-point number becomes an integer: what is out of range is the processor's affair.
template <typename From>
Operation FindCast(tf::DataType to) {
  if (to == tf::DT_DOUBLE) return Convert<From, double>();
  if (to == tf::DT_FLOAT) return Convert<From, float>();
  if (std::is_floating_point_v<From>) return nullptr;
  if (to == tf::DT_INT32) return Convert<From, int32_t>();
  if (to == tf::DT_INT64) return Convert<From, int64_t>();
  return nullptr;
}

bool IsNumber(tf::DataType type) {
  return type == tf::DT_BOOL || type == tf::DT_INT32 || type == tf::DT_INT64 || type == tf::DT_FLOAT ||
         type == tf::DT_DOUBLE;
}

}  // namespace

NumberProgram::Operation NumberProgram::Find(const tf::OpKernel& kernel) {
  const std::string& op = kernel.type_string();
  if (kernel.num_outputs() != 1 || kernel.num_inputs() < 1 || kernel.num_inputs() > 2) return nullptr;
  if (!std::all_of(kernel.input_types().begin(), kernel.input_types().end(), IsNumber)) return nullptr;
  if (op == "Identity") return [](const Number& a, const Number&, Number* r) { *r = a; };
  const tf::DataType type = kernel.input_type(0);
  if (op == "Cast") {
    const tf::DataType to = kernel.output_type(0);
    if (type == tf::DT_INT32) return FindCast<int32_t>(to);
    if (type == tf::DT_INT64) return FindCast<int64_t>(to);
    if (type == tf::DT_FLOAT) return FindCast<float>(to);
    return type == tf::DT_DOUBLE ? FindCast<double>(to) : nullptr;
  }
  switch (type) {
    case tf::DT_BOOL:
      return FindOfBools(op);
    case tf::DT_INT32:
      return FindOfNumbers<int32_t>(op);
    case tf::DT_INT64:
      return FindOfNumbers<int64_t>(op);
    case tf::DT_FLOAT:
      return FindOfNumbers<float>(op);
    default:
      return FindOfNumbers<double>(op);
  }
}

bool NumberProgram::Make(const Members& members, const std::vector<int>& variables) {
  const std::vector<Members::Member>& all = members.members();
  std::vector<bool> changes(all.size(), false);
  const auto variable = [&](const ValueRef& value) {
    if (value.member != ValueRef::kArgument) return variables.end();
    return std::find(variables.begin(), variables.end(), value.index);
  };
  for (size_t i = 0; i < all.size(); ++i) {
    changes[i] = std::any_of(all[i].inputs.begin(), all[i].inputs.end(), [&](const ValueRef& value) {
      return variable(value) != variables.end() || (value.member != ValueRef::kArgument && changes[value.member]);
    });
  }
  // The invariants are counted first: their numbers come before those of steps.
  std::map<std::pair<int, int>, int> number_of;
  std::vector<ValueRef> invariants;
  size_ = static_cast<int>(variables.size());
  const auto add_invariant = [&](const ValueRef& value) {
    if (variable(value) != variables.end() || (value.member != ValueRef::kArgument && changes[value.member])) return;
    if (!number_of.emplace(std::pair(value.member, value.index), size_).second) return;
    invariants.push_back(value);
    ++size_;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    if (!changes[i]) continue;
    for (const ValueRef& value : all[i].inputs) add_invariant(value);
  }
  for (const ValueRef& value : members.results()) add_invariant(value);
  const auto find = [&](const ValueRef& value) {
    const auto found = variable(value);
    return found != variables.end() ? static_cast<int>(found - variables.begin())
                                    : number_of.at({value.member, value.index});
  };
  for (size_t i = 0; i < all.size(); ++i) {
    if (!changes[i]) continue;
    const Operation operation = Find(*all[i].kernel);
    if (operation == nullptr) return false;
    const int a = find(all[i].inputs[0]);
    const int b = all[i].inputs.size() > 1 ? find(all[i].inputs[1]) : a;
    number_of[{static_cast<int>(i), 0}] = size_;
    steps_.push_back({operation, a, b, size_++});
  }
  for (const ValueRef& value : members.results()) results_.push_back(find(value));
  variables_ = variables;
  invariants_ = members.Part(invariants);
  return true;
}

bool NumberProgram::Run::Begin(const NumberProgram& program, tf::OpKernelContext* ctx, Members::Environment arguments) {
  program_ = &program;
  numbers_.assign(program.size_, Number{});
  next_.resize(program.variables_.size());
  types_.clear();
  std::vector<tf::Tensor> given;
  for (int argument : program.variables_) {
    given.push_back(arguments.arguments[argument]);
    types_.push_back(given.back().dtype());
  }
  if (!program.invariants_.RunAll(ctx, arguments, &given).ok()) return false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].dims() != 0 || !IsNumber(given[i].dtype())) return false;
    std::memcpy(&numbers_[i], given[i].data(), given[i].TotalBytes());
  }
  return true;
}

bool NumberProgram::Run::Compute() {
  for (const Step& step : program_->steps_) step.operation(numbers_[step.a], numbers_[step.b], &numbers_[step.result]);
  return numbers_[program_->results_[0]].b;
}

void NumberProgram::Run::Next() {
  for (size_t i = 0; i < next_.size(); ++i) next_[i] = numbers_[program_->results_[i + 1]];
  std::copy(next_.begin(), next_.end(), numbers_.begin());
}

tf::Tensor ToTensor(const Number& number, tf::DataType dtype) {
  tf::Tensor tensor(dtype, tf::TensorShape({}));
  Put(number, 0, &tensor);
  return tensor;
}

void Put(const Number& number, int64_t i, tf::Tensor* tensor) {
  const size_t size = tf::DataTypeSize(tensor->dtype());
  std::memcpy(static_cast<char*>(tensor->data()) + i * size, &number, size);
}

}  // namespace xpu::cluster
