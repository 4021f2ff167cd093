// Members of clusters for tests: kernels of TensorFlow's, on its CPU device.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_TESTS_MEMBERS_TESTING_H_
#define TENSORFLOW_PLUGIN_CLUSTER_TESTS_MEMBERS_TESTING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/members.h"

namespace xpu::cluster {

class OnCpu : public ::testing::Test {
 protected:
  OnCpu()
      : OnCpu(tensorflow::DeviceFactory::NewDevice("CPU", tensorflow::SessionOptions(),
                                                   "/job:localhost/replica:0/task:0")) {}
  // On another device, the members that say so.
  explicit OnCpu(std::unique_ptr<tensorflow::Device> device) : device_(std::move(device)) {
    // Whatever op: it lends its context to members.
    tensorflow::NodeDef node;
    node.set_name("outer");
    node.set_op("NoOp");
    absl::Status status;
    outer_ = tensorflow::CreateOpKernel(tensorflow::DeviceType(tensorflow::DEVICE_CPU), device_.get(), Allocator(),
                                        node, TF_GRAPH_DEF_VERSION, &status);
    EXPECT_TRUE(status.ok()) << status;
    params_.op_kernel = outer_.get();
    params_.device = device_.get();
    params_.resource_manager = device_->resource_manager();
    params_.cancellation_manager = nullptr;
    context_ = std::make_unique<tensorflow::OpKernelContext>(&params_);
  }

  // A member whose arguments and results are all of this type, or as `attributes` say.
  struct Node {
    std::string op;
    std::vector<std::string> inputs;
    std::vector<std::pair<std::string, tensorflow::AttrValue>> attributes;
    bool on_device = false;  // it has the kernel of the device's type
  };
  static tensorflow::AttrValue Attribute(const tensorflow::DataType type) {
    tensorflow::AttrValue value;
    value.set_type(type);
    return value;
  }
  static Node Op(const std::string& op, std::vector<std::string> inputs, tensorflow::DataType type) {
    return {op, std::move(inputs), {{"T", Attribute(type)}}};
  }
  template <typename T>
  static Node Constant(T number) {
    tensorflow::AttrValue value;
    tensorflow::Tensor(number).AsProtoTensorContent(value.mutable_tensor());
    return {"Const", {}, {{"dtype", Attribute(tensorflow::DataTypeToEnum<T>::value)}, {"value", value}}};
  }

  // Named n0, n1, ...
  static tensorflow::GraphDef GraphOf(const std::vector<Node>& nodes) {
    tensorflow::GraphDef graph;
    for (const Node& node : nodes) {
      tensorflow::NodeDef* def = graph.add_node();
      def->set_name("n" + std::to_string(graph.node_size() - 1));
      def->set_op(node.op);
      for (const std::string& input : node.inputs) def->add_input(input);
      for (const auto& [name, value] : node.attributes) (*def->mutable_attr())[name] = value;
      if (!node.on_device) (*def->mutable_attr())[attr::kOnCpu].set_b(true);
      const tensorflow::OpDef* op = nullptr;
      if (tensorflow::OpRegistry::Global()->LookUpOpDef(node.op, &op).ok()) {
        tensorflow::AddDefaultsToNodeDef(*op, def);
      }
    }
    return graph;
  }

  absl::Status Create(const std::vector<Node>& nodes, const std::vector<std::string>& results, Members* members) {
    std::vector<ValueRef> values(results.size());
    for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(ParseValueRef(results[i], &values[i]).ok());
    absl::Status status;
    tensorflow::OpKernelConstruction construction(tensorflow::DeviceType(tensorflow::DEVICE_CPU), device_.get(),
                                                  Allocator(), nullptr, device_->resource_manager(), nullptr, {}, {},
                                                  TF_GRAPH_DEF_VERSION, &status);
    return members->Create(&construction, GraphOf(nodes), std::move(values));
  }
  Members MembersOf(const std::vector<Node>& nodes, const std::vector<std::string>& results) {
    Members members;
    const absl::Status status = Create(nodes, results, &members);
    EXPECT_TRUE(status.ok()) << status;
    return members;
  }

  Members::Environment With(std::vector<tensorflow::Tensor> arguments) {
    return {device_.get(), device_->resource_manager(), std::move(arguments)};
  }
  std::vector<tensorflow::Tensor> Run(const Members& members, std::vector<tensorflow::Tensor> arguments) {
    Members::Environment environment = With(std::move(arguments));
    std::vector<tensorflow::Tensor> results;
    const absl::Status status = members.RunAll(context_.get(), environment, &results);
    EXPECT_TRUE(status.ok()) << status;
    return results;
  }

  tensorflow::Allocator* Allocator() { return device_->GetAllocator(tensorflow::AllocatorAttributes()); }

  const std::unique_ptr<tensorflow::Device> device_;
  std::unique_ptr<tensorflow::OpKernel> outer_;
  tensorflow::OpKernelContext::Params params_;
  std::unique_ptr<tensorflow::OpKernelContext> context_;
};

template <typename T>
T NumberIn(const tensorflow::Tensor& tensor) {
  EXPECT_EQ(tensor.dtype(), tensorflow::DataTypeToEnum<T>::value);
  return tensor.scalar<T>()();
}

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_TESTS_MEMBERS_TESTING_H_
