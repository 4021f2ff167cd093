#include "tensorflow_plugin/device/stream_uses.h"

#include <map>
#include <mutex>
#include <utility>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu {
namespace {

using Line = std::pair<std::string, std::string>;  // of a device, its name

struct StreamUses {
  Mutex mutex;
  std::map<const SP_Stream_st*, Line> lines;
  std::map<Line, std::string> uses;  // those of streams that are gone, too: a profile may have what they ran
};
StreamUses& TheUses() {
  static auto* const uses = new StreamUses;
  return *uses;
}

}  // namespace

std::string LineOfNewStream(const SP_Stream_st* stream, const std::string& device, int number) {
  StreamUses& all = TheUses();
  std::lock_guard<std::mutex> lock(all.mutex);
  const Line line(device, "stream " + std::to_string(number));
  all.uses.erase(line);  // of an earlier device of this name
  all.lines[stream] = line;
  return line.second;
}

void SetUse(const SP_Stream_st* stream, const std::string& use) {
  StreamUses& all = TheUses();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.lines.find(stream);
  if (found != all.lines.end()) all.uses[found->second] = use;
}

void ForgetStream(const SP_Stream_st* stream) {
  StreamUses& all = TheUses();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.lines.erase(stream);
}

std::string UseOf(const std::string& device, const std::string& line) {
  StreamUses& all = TheUses();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.uses.find(Line(device, line));
  return found == all.uses.end() ? line : found->second;
}

}  // namespace xpu
