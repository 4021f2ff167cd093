#include "tensorflow_plugin/interop/types.h"

#include <array>
#include <utility>

#include "tensorflow/core/framework/types.h"
#include "tensorflow_plugin/tf_internals/differences.h"

namespace xpu::interop {
namespace {

using tensorflow::DataType;

struct Pair {
  DataType tf;
  DLDataType dl;
};

constexpr DLDataType Dl(int code, int bits) { return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1}; }

// The most frequent first: FromDl searches in this order.
constexpr Pair kPairs[] = {
    {tensorflow::DT_FLOAT, Dl(kDLFloat, 32)},
    {tensorflow::DT_INT32, Dl(kDLInt, 32)},
    {tensorflow::DT_INT64, Dl(kDLInt, 64)},
    {tensorflow::DT_BFLOAT16, Dl(kDLBfloat, 16)},
    {tensorflow::DT_HALF, Dl(kDLFloat, 16)},
    {tensorflow::DT_DOUBLE, Dl(kDLFloat, 64)},
    {tensorflow::DT_BOOL, Dl(kDLBool, 8)},
    {tensorflow::DT_UINT8, Dl(kDLUInt, 8)},
    {tensorflow::DT_INT8, Dl(kDLInt, 8)},
    {tensorflow::DT_INT16, Dl(kDLInt, 16)},
    {tensorflow::DT_UINT16, Dl(kDLUInt, 16)},
    {tensorflow::DT_UINT32, Dl(kDLUInt, 32)},
    {tensorflow::DT_UINT64, Dl(kDLUInt, 64)},
    {tensorflow::DT_COMPLEX64, Dl(kDLComplex, 64)},
    {tensorflow::DT_COMPLEX128, Dl(kDLComplex, 128)},
    {tensorflow::DT_FLOAT8_E4M3B11FNUZ, Dl(kDLFloat8_e4m3b11fnuz, 8)},
    {tensorflow::DT_FLOAT8_E4M3FN, Dl(kDLFloat8_e4m3fn, 8)},
    {tensorflow::DT_FLOAT8_E4M3FNUZ, Dl(kDLFloat8_e4m3fnuz, 8)},
    {tensorflow::DT_FLOAT8_E5M2, Dl(kDLFloat8_e5m2, 8)},
    {tensorflow::DT_FLOAT8_E5M2FNUZ, Dl(kDLFloat8_e5m2fnuz, 8)},
    {tensorflow::DT_INT4, Dl(kDLInt, 4)},
    {tensorflow::DT_UINT4, Dl(kDLUInt, 4)},
#if XPU_HAS_INT2
    {tensorflow::DT_INT2, Dl(kDLInt, 2)},
    {tensorflow::DT_UINT2, Dl(kDLUInt, 2)},
#endif
#if XPU_HAS_FLOAT4
    {tensorflow::DT_FLOAT4_E2M1FN, Dl(kDLFloat4_e2m1fn, 4)},
#endif
};

constexpr int kNumTypes = 64;

constexpr std::array<DLDataType, kNumTypes> ByTensorFlow() {
  std::array<DLDataType, kNumTypes> table{};
  for (const Pair& pair : kPairs) table[pair.tf] = pair.dl;
  return table;
}
constexpr std::array<DLDataType, kNumTypes> kByTensorFlow = ByTensorFlow();

struct CodeName {
  const char* name;
  bool with_bits;
};

constexpr CodeName kCodeNames[] = {
    {"int", true},
    {"uint", true},
    {"float", true},
    {"opaque handle ", true},
    {"bfloat", true},
    {"complex", true},
    {"bool", false},
    {"float8_e3m4", false},
    {"float8_e4m3", false},
    {"float8_e4m3b11fnuz", false},
    {"float8_e4m3fn", false},
    {"float8_e4m3fnuz", false},
    {"float8_e5m2", false},
    {"float8_e5m2fnuz", false},
    {"float8_e8m0fnu", false},
    {"float6_e2m3fn", false},
    {"float6_e3m2fn", false},
    {"float4_e2m1fn", false},
};

constexpr std::pair<int, const char*> kDeviceNames[] = {
    {kDLCPU, "CPU"},           {kDLCUDA, "CUDA"},       {kDLCUDAHost, "CUDAHost"}, {kDLOpenCL, "OpenCL"},
    {kDLVulkan, "Vulkan"},     {kDLMetal, "Metal"},     {kDLVPI, "VPI"},           {kDLROCM, "ROCM"},
    {kDLROCMHost, "ROCMHost"}, {kDLExtDev, "ExtDev"},   {kDLOneAPI, "OneAPI"},     {kDLCUDAManaged, "CUDAManaged"},
    {kDLWebGPU, "WebGPU"},     {kDLHexagon, "Hexagon"}, {kDLMAIA, "MAIA"},         {kDLTrn, "Trn"},
};

}  // namespace

DLDataType ToDl(DataType type) {
  const auto index = static_cast<unsigned>(type);
  return index < kNumTypes ? kByTensorFlow[index] : DLDataType{};
}

DataType FromDl(DLDataType type) {
  for (const Pair& pair : kPairs) {
    if (pair.dl.code == type.code && pair.dl.bits == type.bits && type.lanes == 1) return pair.tf;
  }
  return tensorflow::DT_INVALID;
}

int ElementBytes(DataType type) { return tensorflow::DataTypeSize(type); }

std::string NameOf(DLDataType type) {
  std::string name;
  if (type.code < std::size(kCodeNames)) {
    name = kCodeNames[type.code].name;
    if (kCodeNames[type.code].with_bits) name += std::to_string(type.bits);
  } else {
    name = "type code " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits";
  }
  return type.lanes == 1 ? name : name + "x" + std::to_string(type.lanes);
}

std::string NameOf(DataType type) { return tensorflow::DataTypeString(type); }

std::string NameOf(DLDevice device) {
  std::string name = "device type " + std::to_string(device.device_type);
  for (const auto& [type, known] : kDeviceNames) {
    if (type == device.device_type) name = known;
  }
  return name + ":" + std::to_string(device.device_id);
}

}  // namespace xpu::interop
