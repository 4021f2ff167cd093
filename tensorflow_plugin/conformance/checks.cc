#include "tensorflow_plugin/conformance/checks.h"

namespace xpu::conformance {

const std::vector<Check>& AllChecks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> checks;
    for (const auto theme : {RegistrationChecks, DeviceChecks, MemoryChecks, CopyChecks, FillChecks, StreamChecks,
                             EventChecks, CallbackChecks, TimerChecks, ThreadChecks}) {
      for (const Check& check : theme()) checks.push_back(check);
    }
    return checks;
  }();
  return all;
}

}  // namespace xpu::conformance
