// The common part of the ops that draw random numbers, wherever their sequence starts: in a seed, a key or a variable.
#ifndef TENSORFLOW_PLUGIN_OPS_RANDOM_RANDOM_H_
#define TENSORFLOW_PLUGIN_OPS_RANDOM_RANDOM_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/framework/registry.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/primitives/philox.h"

namespace xpu {

// Groups of four words that TensorFlow sets aside for each number, whatever its kind: where the next call's numbers
// start depends on it.
inline constexpr uint64_t kGroupsPerNumber = 256;

// The values of an algorithm's argument. XLA alone knows ThreeFry.
inline constexpr int64_t kPhiloxAlgorithm = 1, kThreeFryAlgorithm = 2, kAutoSelectAlgorithm = 3;

// Where a sequence starts.
struct SequenceStart {
  uint64_t key = 0, low = 0, high = 0;
};

// The start that a seed of two integers in host memory stands for.
Status StartOfSeed(const Tensor& seed, SequenceStart* start);

// Refuses what cannot be the inputs key, counter and alg.
Status CheckKey(const Tensor& key, const Tensor& counter, const Tensor& alg);

// The sequence of one node, from its attributes seed and seed2; unpredictable when both are 0.
class Sequence {
 public:
  explicit Sequence(Construction& c);
  // Takes `groups` groups of four words.
  SequenceStart Take(uint64_t groups);

 private:
  Mutex mutex_;
  Philox generator_;
};

// A distribution, and the names of its ops.
struct RandomFamily {
  const char* from_seed;
  const char* from_key;
  const char* stateful;  // or null
  const char* stateful_type;
  const char* from_variable;
  RandomKind kind;
  const TypeList& types;
  bool has_range;  // further arguments minval and maxval
};
const std::vector<RandomFamily>& RandomFamilies();

// Reads inputs `first` and `first` + 1, the range [minval, maxval), into the descriptor; and refuses an empty one.
Status ReadRange(Context& ctx, int first, RandomDesc* desc);
Status CheckRange(const RandomDesc& desc);

// Fills `out`.
Status Draw(Context& ctx, const SequenceStart& start, RandomDesc desc, const Tensor& out);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_RANDOM_RANDOM_H_
