#include "tensorflow_plugin/cluster/dump.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/members.h"

namespace xpu::cluster {
namespace {

std::string& Folder() {
  static auto* folder = new std::string;
  return *folder;
}

// The next page's file, which ends in `name`.
std::string NextPath(const std::string& name) {
  static std::atomic<int> number{0};
  char prefix[16];
  std::snprintf(prefix, sizeof(prefix), "%04d_", number++);
  constexpr size_t kLongest = 200;  // of file names the system takes 255 characters
  std::string file = prefix + name.substr(0, kLongest) + ".txt";
  for (char& c : file) c = c == '/' ? '_' : c;
  return Folder() + "/" + file;
}

// Once in a process.
void SayIfNotWritten(std::ofstream& out, const std::string& path) {
  static std::atomic<bool> said{false};
  out.flush();
  if (out || said.exchange(true)) return;
  std::fprintf(stderr, "tensorflow_xpu: TF_XPU_DUMP_FUSION: %s cannot be written (%s)\n", path.c_str(),
               std::strerror(errno));
}

}  // namespace

void SetDumpFolder(std::string folder) { Folder() = std::move(folder); }

void DumpLoops(const std::map<std::string, std::string>& loops) {
  if (Folder().empty() || loops.empty()) return;
  const std::string path = NextPath("loops");
  std::ofstream out(path);
  out << "Loops whose iterations are in no cluster's command list\n\n";
  for (const auto& [name, what] : loops) out << name << ": " << what << "\n";
  SayIfNotWritten(out, path);
}

void Dump(const std::string& name, const Members& members, const Captured* captured, const std::string& why) {
  if (Folder().empty()) return;
  const std::string path = NextPath(name);
  std::ofstream out(path);
  out << "Cluster " << name << ": " << members.members().size() << " ops\n\n";
  for (size_t i = 0; i < members.members().size(); ++i) {
    const Members::Member& member = members.members()[i];
    out << i << ": " << member.kernel->type_string() << " " << member.kernel->name() << " (";
    for (size_t k = 0; k < member.inputs.size(); ++k) out << (k == 0 ? "" : ", ") << ToString(member.inputs[k]);
    out << ")\n";
  }
  out << "results:";
  for (const ValueRef& source : members.results()) out << " " << ToString(source);
  out << "\n\n";
  if (captured == nullptr) {
    out << "Not captured: " << why << "\n";
    return SayIfNotWritten(out, path);
  }
  out << captured->list->commands.size() << " commands, " << captured->memory.bytes << " bytes for what is between\n";
  for (size_t i = 0; i < captured->list->commands.size(); ++i) {
    const Command& command = captured->list->commands[i];
    out << i << ": " << xpu::ToString(command) << "  # ";
    // The origin is a member, or an op within one.
    if (command.origin < static_cast<int>(members.members().size())) {
      out << command.origin << "\n";
    } else {
      out << captured->origins[command.origin]->name() << "\n";
    }
  }
  SayIfNotWritten(out, path);
}

}  // namespace xpu::cluster
