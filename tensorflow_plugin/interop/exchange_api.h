// DLPack's C exchange API, for consumers that call it without going through the interpreter.
#ifndef TENSORFLOW_PLUGIN_INTEROP_EXCHANGE_API_H_
#define TENSORFLOW_PLUGIN_INTEROP_EXCHANGE_API_H_

#include "dlpack/dlpack.h"

namespace xpu::interop {

// Lives as long as the process. Its Python objects are eager tensors.
const DLPackExchangeAPI* ExchangeApi();

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_EXCHANGE_API_H_
