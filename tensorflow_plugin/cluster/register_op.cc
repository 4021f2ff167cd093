#include "tensorflow_plugin/cluster/register_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow_plugin/cluster/cluster_op.h"

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

absl::Status StreamOf(tf::OpKernelContext* ctx, SP_Stream_st** stream) {
  static thread_local const std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(),
                                                                                          &TF_DeleteStatus);
  *stream = TF_GetStream(reinterpret_cast<TF_OpKernelContext*>(ctx), status.get());
  if (*stream == nullptr) {
    return absl::InternalError(absl::StrCat(ctx->op_kernel().name(), ": ", TF_Message(status.get())));
  }
  return absl::OkStatus();
}

OpDefinition DefinitionWithMembers(const char* name, const std::vector<std::string>& more) {
  OpDefinition op{name, OpTrait::kCannotWait};
  for (const char* list :
       {attr::kHost, attr::kUploaded, attr::kDevice, attr::kHostResults, attr::kFetched, attr::kDeviceResults}) {
    op.attributes.push_back(absl::StrCat(list, ": list(type) >= 0"));
  }
  op.attributes.push_back(absl::StrCat(attr::kResources, ": int >= 0"));
  op.attributes.push_back(absl::StrCat(attr::kMembers, ": string"));
  op.attributes.push_back(absl::StrCat(attr::kResults, ": list(string)"));
  op.attributes.insert(op.attributes.end(), more.begin(), more.end());
  op.inputs = {absl::StrCat("host: ", attr::kHost), absl::StrCat("uploaded: ", attr::kUploaded),
               absl::StrCat("device: ", attr::kDevice), absl::StrCat("resources: ", attr::kResources, " * resource")};
  op.outputs = {absl::StrCat("host_results: ", attr::kHostResults), absl::StrCat("fetched: ", attr::kFetched),
                absl::StrCat("device_results: ", attr::kDeviceResults)};
  op.on_host = {"host", "uploaded", "resources", "host_results", "fetched"};
  op.is_stateful = true;
  return op;
}

std::string RegisterOp(const OpDefinition& op, const std::string& device_type,
                       std::unique_ptr<tf::kernel_factory::OpKernelFactory> factory) {
  AddTraits(op.name, op.traits);
  TF_OpDefinitionBuilder* definition = TF_NewOpDefinitionBuilder(op.name);
  for (const std::string& attribute : op.attributes) TF_OpDefinitionBuilderAddAttr(definition, attribute.c_str());
  for (const std::string& input : op.inputs) TF_OpDefinitionBuilderAddInput(definition, input.c_str());
  for (const std::string& output : op.outputs) TF_OpDefinitionBuilderAddOutput(definition, output.c_str());
  TF_OpDefinitionBuilderSetIsStateful(definition, op.is_stateful);
  std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(
      definition, [](TF_ShapeInferenceContext* c, TF_Status* s) { TF_ShapeInferenceContextSetUnknownShape(c, s); });
  TF_RegisterOpDefinition(definition, status.get());
  if (TF_GetCode(status.get()) != TF_OK) return TF_Message(status.get());
  tf::KernelDefBuilder kernel(op.name);
  kernel.Device(device_type.c_str());
  for (const char* value : op.on_host) kernel.HostMemory(value);
  tf::kernel_factory::OpKernelRegistrar(kernel.Build(), op.name, std::move(factory));
  return "";
}

}  // namespace xpu::cluster
