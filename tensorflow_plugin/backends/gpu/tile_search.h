// Finds the quickest of a few ways to compute a product, for products like it. Each is tried on products that are asked
// for, and the device's clock tells how long they took. The result is kept beside the compiled kernels. The ways differ
// in speed alone, so that nobody's results depend on what is tried, or on how the clock ran.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_TILE_SEARCH_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_TILE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/gpu/compiler.h"
#include "tensorflow_plugin/backends/gpu/event_times.h"

namespace xpu::gpu {

class TileSearch {
 public:
  struct SearchLimits {
    double least_work = 1 << 24;  // multiplications in a product that is worth a search
    int patience = 16;            // products of a kind before another way is tried: there may be no more of them
    int runs = 5;                 // of each way, the quickest of which counts
    double seconds = 5;           // beyond that, of a process, no search begins: kernels are compiled for it
  };

  void SetLimits(const SearchLimits& limits) { limits_ = limits; }

  // How to run a product: a way, of `ways`, of which 0 is used where nothing is known. `timed`: tell when it ran.
  struct Choice {
    int way = 0;
    bool timed = false;
  };
  // For one of `work` multiplications; `name` says what else the answer depends on, and is asked once for a kind.
  Choice Next(Compiler& notes, uint64_t kind, int ways, double work, const std::function<std::string()>& name);
  // It was enqueued, and `time` tells when it runs, after so many seconds in which a kernel may have been compiled.
  void Ran(uint64_t kind, const Choice& run, double work, double seconds, std::shared_ptr<const CommandTime> time);
  // It cannot be run in that way.
  void CannotRun(uint64_t kind, const Choice& run);

  // The number of kinds whose quickest way is known.
  int Settled();

 private:
  static constexpr int kNone = -1;
  struct Way {
    int started = 0, ended = 0;
    double least = 0;  // nanoseconds for a multiplication
    bool usable = true;
  };
  struct Timed {
    int way;
    double work;
    std::shared_ptr<const CommandTime> time;
  };
  struct WorkKind {
    std::string name;
    int asked = 0;
    int chosen = kNone;
    bool begun = false;
    std::vector<Way> ways;
    std::vector<Timed> running;
  };
  void NoteEnded(WorkKind& kind) const;
  // The quickest; kNone as long as one is still to be run.
  int Quickest(const WorkKind& kind) const;

  SearchLimits limits_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, WorkKind> kinds_;
  double spent_ = 0;  // seconds
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_TILE_SEARCH_H_
