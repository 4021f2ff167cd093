#include "tensorflow_plugin/cluster/register_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {

namespace tf = tensorflow;

absl::Status CreateMembers(tf::OpKernelConstruction* c, Members* members) {
  std::string serialized;
  std::vector<std::string> results;
  TF_RETURN_IF_ERROR(c->GetAttr(attr::kMembers, &serialized));
  TF_RETURN_IF_ERROR(c->GetAttr(attr::kResults, &results));
  tf::GraphDef graph;
  if (!graph.ParseFromString(serialized)) {
    return absl::InvalidArgumentError(absl::StrCat("the members of ", c->def().name(), " are no GraphDef"));
  }
  std::vector<ValueRef> sources(results.size());
  for (size_t i = 0; i < results.size(); ++i) TF_RETURN_IF_ERROR(ParseValueRef(results[i], &sources[i]));
  return members->Create(c, graph, std::move(sources));
}

std::string RegisterOp(const char* name, const std::vector<std::string>& more, const std::string& device_type,
                       std::unique_ptr<tf::kernel_factory::OpKernelFactory> factory) {
  AddTraits(name, OpTrait::kCannotWait);
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  for (const char* list :
       {attr::kHost, attr::kUploaded, attr::kDevice, attr::kHostResults, attr::kFetched, attr::kDeviceResults}) {
    TF_OpDefinitionBuilderAddAttr(op, absl::StrCat(list, ": list(type) >= 0").c_str());
  }
  TF_OpDefinitionBuilderAddAttr(op, absl::StrCat(attr::kResources, ": int >= 0").c_str());
  TF_OpDefinitionBuilderAddAttr(op, absl::StrCat(attr::kMembers, ": string").c_str());
  TF_OpDefinitionBuilderAddAttr(op, absl::StrCat(attr::kResults, ": list(string)").c_str());
  for (const std::string& attribute : more) TF_OpDefinitionBuilderAddAttr(op, attribute.c_str());
  TF_OpDefinitionBuilderAddInput(op, absl::StrCat("host: ", attr::kHost).c_str());
  TF_OpDefinitionBuilderAddInput(op, absl::StrCat("uploaded: ", attr::kUploaded).c_str());
  TF_OpDefinitionBuilderAddInput(op, absl::StrCat("device: ", attr::kDevice).c_str());
  TF_OpDefinitionBuilderAddInput(op, absl::StrCat("resources: ", attr::kResources, " * resource").c_str());
  TF_OpDefinitionBuilderAddOutput(op, absl::StrCat("host_results: ", attr::kHostResults).c_str());
  TF_OpDefinitionBuilderAddOutput(op, absl::StrCat("fetched: ", attr::kFetched).c_str());
  TF_OpDefinitionBuilderAddOutput(op, absl::StrCat("device_results: ", attr::kDeviceResults).c_str());
  // Nobody may fold it, drop it or make one of two.
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(
      op, [](TF_ShapeInferenceContext* c, TF_Status* s) { TF_ShapeInferenceContextSetUnknownShape(c, s); });
  TF_RegisterOpDefinition(op, status.get());
  if (TF_GetCode(status.get()) != TF_OK) return TF_Message(status.get());
  const tf::KernelDef* kernel = tf::KernelDefBuilder(name)
                                    .Device(device_type.c_str())
                                    .HostMemory("host")
                                    .HostMemory("uploaded")
                                    .HostMemory("resources")
                                    .HostMemory("host_results")
                                    .HostMemory("fetched")
                                    .Build();
  tf::kernel_factory::OpKernelRegistrar(kernel, name, std::move(factory));
  return "";
}

}  // namespace xpu::cluster
