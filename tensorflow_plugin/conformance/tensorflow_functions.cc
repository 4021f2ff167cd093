// The functions of TensorFlow's C API that a device plugin cannot do without, so that a library can be examined where
// TensorFlow is not. Exported by the executable: the library's references find them there. Where TensorFlow's own
// libraries are in the process, all of them go to those, so that there is one kind of TF_Status.
#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/conformance/library.h"

struct TSL_Status {
  TF_Code code = TF_OK;
  std::string message;
  std::map<std::string, std::string> payloads;
};

namespace xpu::conformance {
namespace {

struct StatusFunctions {
  decltype(TF_NewStatus)* create = nullptr;
  decltype(TF_DeleteStatus)* destroy = nullptr;
  decltype(TF_SetStatus)* set = nullptr;
  decltype(TF_SetPayload)* set_payload = nullptr;
  decltype(TF_ForEachPayload)* for_each_payload = nullptr;
  decltype(TF_SetStatusFromIOError)* set_from_io_error = nullptr;
  decltype(TF_GetCode)* code = nullptr;
  decltype(TF_Message)* message = nullptr;
};
StatusFunctions tensorflow;  // all or none

}  // namespace

void UseStatusOf(void* handle) {
  StatusFunctions found;
  const auto find = [handle](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  if (find(found.create, "TF_NewStatus") && find(found.destroy, "TF_DeleteStatus") && find(found.set, "TF_SetStatus") &&
      find(found.set_payload, "TF_SetPayload") && find(found.for_each_payload, "TF_ForEachPayload") &&
      find(found.set_from_io_error, "TF_SetStatusFromIOError") && find(found.code, "TF_GetCode") &&
      find(found.message, "TF_Message")) {
    tensorflow = found;
  }
}

}  // namespace xpu::conformance

using xpu::conformance::tensorflow;

TF_Status* TF_NewStatus() { return tensorflow.create ? tensorflow.create() : new TSL_Status; }

void TF_DeleteStatus(TF_Status* status) {
  if (tensorflow.destroy) return tensorflow.destroy(status);
  delete status;
}

void TF_SetStatus(TF_Status* status, TF_Code code, const char* message) {
  if (tensorflow.set) return tensorflow.set(status, code, message);
  status->code = code;
  status->message = code == TF_OK || !message ? "" : message;
  status->payloads.clear();
}

void TF_SetPayload(TF_Status* status, const char* key, const char* value) {
  if (tensorflow.set_payload) return tensorflow.set_payload(status, key, value);
  status->payloads[key] = value;
}

void TF_ForEachPayload(const TF_Status* status, TF_PayloadVisitor visitor, void* capture) {
  if (tensorflow.for_each_payload) return tensorflow.for_each_payload(status, visitor, capture);
  for (const auto& [key, value] : status->payloads) visitor(key.c_str(), value.c_str(), capture);
}

void TF_SetStatusFromIOError(TF_Status* status, int error_code, const char* context) {
  if (tensorflow.set_from_io_error) return tensorflow.set_from_io_error(status, error_code, context);
  TF_SetStatus(status, TF_UNKNOWN, (std::string(context) + ": " + std::strerror(error_code)).c_str());
}

TF_Code TF_GetCode(const TF_Status* status) { return tensorflow.code ? tensorflow.code(status) : status->code; }

const char* TF_Message(const TF_Status* status) {
  return tensorflow.message ? tensorflow.message(status) : status->message.c_str();
}

// Logging: TensorFlow 2.21 has these no more, and plugins built with older headers call them. The levels are
// information, warning, error and fatal.
extern "C" __attribute__((visibility("default"), format(printf, 2, 3))) void TF_Log(int /*level*/, const char* format,
                                                                                    ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
}
extern "C" __attribute__((visibility("default"))) void TF_VLog(int /*level*/, const char* /*format*/, ...) {}
extern "C" __attribute__((visibility("default"))) void TF_DVLog(int /*level*/, const char* /*format*/, ...) {}
