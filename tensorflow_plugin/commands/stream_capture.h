// A device that runs nothing: what is launched on it becomes a list of commands. Its memory is addresses at which there
// is nothing: a read or a write there faults.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_STREAM_CAPTURE_H_
#define TENSORFLOW_PLUGIN_COMMANDS_STREAM_CAPTURE_H_

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

class StreamCapture {
 public:
  // A longer list, of loops with very many iterations, would take more memory than it is worth: some 2 KB each.
  static constexpr size_t kMaxCommands = 32768;

  // For commands that `real` is to run.
  explicit StreamCapture(Device& real);
  ~StreamCapture();
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;

  Device& device();
  Stream& stream();

  // A new buffer's address. That of one on the host is for the stream's copies alone.
  void* NewBuffer(int64_t bytes, Buffer::Kind kind);
  // Where an address lies. One outside the capture's memory is real, and becomes a fixed buffer.
  BufferSlice Resolve(const void* address);
  static bool IsVirtual(const void* address);

  // The commands that follow belong to this op. `follows_updates`: see Command.
  void set_origin(int origin, bool follows_updates = true) {
    origin_ = origin;
    follows_updates_ = follows_updates;
  }

  // The first thing that could not be captured, if any: a command whose outcome somebody waits for.
  const std::string& why_uncapturable() const { return why_uncapturable_; }
  // There were more commands than a list may have.
  bool is_full() const { return list_.commands.size() >= kMaxCommands; }

  // So many commands are expected, all together.
  void Reserve(size_t commands) {
    const size_t capacity = list_.commands.capacity();
    if (commands > capacity) list_.commands.reserve(std::max(commands, 2 * capacity));
  }

  // The list so far, with everything in it.
  CommandList& list() { return list_; }
  const CommandList& list() const { return list_; }

 private:
  class CaptureDevice;
  class CaptureStream;

  template <typename Desc>
  Command& Add(const Desc& desc) {
    Command& command = list_.commands.emplace_back();
    command.desc.emplace<Desc>(desc);
    command.origin = origin_;
    command.follows_updates = follows_updates_;
    return command;
  }
  Status RequireRoom();
  Status CannotCapture(const char* what);

  int origin_ = 0;
  bool follows_updates_ = true;
  std::string why_uncapturable_;
  CommandList list_;
  std::vector<uint64_t> starts_;  // of the virtual buffers, ascending
  std::vector<int> virtual_;      // their numbers
  uint64_t next_;
  std::unordered_map<const void*, int> fixed_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Device> device_;
};

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_STREAM_CAPTURE_H_
