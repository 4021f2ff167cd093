#include "tensorflow_plugin/backends/gpu/compiler.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace xpu::gpu {

Status Compiler::Get(const std::string& key, const std::function<std::string()>& source, Kernel** kernel) {
  CompiledEntry* entry = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<CompiledEntry>& found = entries_[key];
    if (found == nullptr) found = std::make_unique<CompiledEntry>();
    entry = found.get();
  }
  // Others may look up theirs while this one compiles.
  std::call_once(entry->once, [&] { entry->status = Compile(source(), &entry->kernel); });
  *kernel = entry->kernel.get();
  return entry->status;
}

std::string WriteUncompiled(const std::string& source, const std::string& options, const std::string& log) {
  const auto unwritten = [&] { return "could not be written to a file; the compiler said: " + log; };
  const char* const folder = std::getenv("TMPDIR");
  std::string path = folder != nullptr && folder[0] != '\0' ? folder : "/tmp";
  path += "/tensorflow_xpu_XXXXXX.cl";
  const int made = mkstemps(path.data(), 3);
  if (made < 0) return unwritten();
  close(made);
  std::ofstream file(path);
  file << "// Options: " << options << "\n" << source << "\n/* The compiler said:\n" << log << "\n*/\n";
  file.close();
  return file ? "is in " + path + ", with what the compiler said" : unwritten();
}

}  // namespace xpu::gpu
