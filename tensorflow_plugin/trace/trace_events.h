// The events that devices record while a profiler listens: which command ran when, of which op, and how much it
// computed and moved.
//
// Code that may record asks On() first, one relaxed load; nothing else happens while nobody listens. A backend on host
// memory gets its events from host_runtime/. One with timers of its own makes a Line per queue and takes the label of a
// command when it is enqueued (LabelOf in labels.h). It calls Record when it knows when the command ran, or records it
// later, when its EventSource is asked.
#ifndef TENSORFLOW_PLUGIN_TRACE_TRACE_EVENTS_H_
#define TENSORFLOW_PLUGIN_TRACE_TRACE_EVENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::trace {

namespace internal {
extern std::atomic<bool> on;  // one, wherever it is asked: inline, each library would have its own
}
// True if a profiler listens.
inline bool On() { return __builtin_expect(internal::on.load(std::memory_order_relaxed), 0); }

// Nanoseconds since 1970: the clock of TensorFlow's own profiler.
uint64_t NowNs();

// A string that events refer to; 0 is none. They are kept for ever: only names of ops and of kinds of commands belong
// here.
using NameId = uint32_t;
NameId Intern(std::string_view text);
std::string TextOf(NameId name);

enum class Kind : uint8_t {
  kCommand,   // a primitive
  kCopy,      // between host and device, or on the device
  kFill,      //
  kWait,      // for another stream
  kCallback,  // the host's, in a stream's order
  kList,      // a cluster's commands, which have events of their own within it
  kAllocate,  // an instant: bytes are those that were asked for
  kFree,      // an instant
};
const char* NameOf(Kind kind);

// The facts that are known of a command before it runs.
struct Label {
  Kind kind = Kind::kCommand;
  NameId what = 0;             // "MatMul of float"
  NameId op = 0, op_type = 0;  // the node that enqueued it, and its op
  int64_t flops = 0;           // of floating point, an addition or a function of the library being one
  int64_t bytes = 0;           // read and written, each byte of an operand once
};

// A queue whose commands are shown on a line of their own: "compute" of the device "XPU:0". Thread-safe.
class Line {
 public:
  // Belongs to what the innermost Lines of this thread says.
  Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  // Takes a place among the lines the first time.
  uint32_t Number();
  const std::string& device() const { return device_; }

 private:
  const std::string device_, what_;
  std::atomic<uint32_t> number_{0};
};

// While an object of this class lives, the lines that this thread makes are those of a device's queue. The code that
// has a stream made says what it is for.
class ScopedLines {
 public:
  ScopedLines(std::string device, std::string what);
  ~ScopedLines();
  ScopedLines(const ScopedLines&) = delete;
  ScopedLines& operator=(const ScopedLines&) = delete;

 private:
  friend class Line;
  static thread_local const ScopedLines* current_;
  const std::string device_, what_;
  const ScopedLines* const outer_;
};

struct Event {
  Label label;
  uint32_t line = 0;
  uint64_t begin_ns = 0, end_ns = 0;
};

// Keeps the event if a profiler listens and there is room. Thread-safe; waits for nobody.
void Record(const Event& event);
inline void Record(Line& line, const Label& label, uint64_t begin_ns, uint64_t end_ns) {
  Record(Event{label, line.Number(), begin_ns, end_ns});
}

// Records a command from its beginning to its end.
class Span {
 public:
  Span(Line& line, const Label& label) : line_(line), label_(label), begin_ns_(NowNs()) {}
  ~Span() { Record(line_, label_, begin_ns_, NowNs()); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Line& line_;
  const Label& label_;
  const uint64_t begin_ns_;
};

// While an object of this class lives, this thread's commands belong to this op. Profiles use that, and so do failures
// that are told when the op has long returned. The texts outlive it.
class ScopedOp {
 public:
  ScopedOp(std::string_view name, std::string_view type);
  ~ScopedOp();
  ScopedOp(const ScopedOp&) = delete;
  ScopedOp& operator=(const ScopedOp&) = delete;

  // Fills in the op of this thread, if there is one.
  static void Fill(Label* label);

  // "MatMul dense/MatMul", without memory of its own: what is longer is cut short. Empty if there is none.
  class Text {
   public:
    std::string_view view() const { return {bytes_, size_}; }

   private:
    friend class ScopedOp;
    void Append(std::string_view text);
    static constexpr size_t kMost = 111;
    uint8_t size_ = 0;
    char bytes_[kMost];
  };
  // The name of this thread's op.
  static Text Current();

 private:
  static thread_local const ScopedOp* current_;
  const std::string_view name_, type_;
  const ScopedOp* const outer_;
};

// While one lives, lists that this thread runs have commands of these ops, by Command::origin.
class ListOps {
 public:
  struct Names {
    std::string name, type;
  };
  using Ops = std::shared_ptr<const std::vector<Names>>;
  explicit ListOps(Ops ops);
  ~ListOps();
  ListOps(const ListOps&) = delete;
  ListOps& operator=(const ListOps&) = delete;

  // Null if they are not known.
  static Ops Current();

 private:
  static thread_local const ListOps* current_;
  const Ops ops_;
  const ListOps* const outer_;
};

// The failure of a command, and which op it was of on which device. As it is where no op is known.
Status OfOp(Status failure, const ScopedOp::Text& op, const std::string& device);

// While one lives, lists that this thread runs have commands of these labels, one each.
class ScopedListLabels {
 public:
  using Labels = std::shared_ptr<const std::vector<Label>>;
  explicit ScopedListLabels(Labels labels);
  ~ScopedListLabels();
  ScopedListLabels(const ScopedListLabels&) = delete;
  ScopedListLabels& operator=(const ScopedListLabels&) = delete;

  // Those of a list of so many commands; null if they are not known.
  static Labels Current(size_t num_commands);

 private:
  static thread_local const ScopedListLabels* current_;
  const Labels labels_;
  const ScopedListLabels* const outer_;
};

// A device that has events of its own, known only when it is asked.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual void Begin() {}
  // Records all that has happened since; still On().
  virtual void End() = 0;
};
// For as long as the process lives.
void AddSource(EventSource* source);

// The recorded events.
struct Trace {
  struct LineName {
    std::string device, what;
  };
  uint64_t begin_ns = 0, end_ns = 0;
  std::vector<Event> events;    // by begin, of equal ones the longest first
  std::vector<LineName> lines;  // Event::line counts from 1
  int64_t dropped = 0;          // for which there was no room
};
constexpr int64_t kMaxEvents = 2'000'000;

// False, and nothing has happened, if somebody listens already.
bool Start();
// Ends it. Empty if nobody listens.
Trace Stop();

}  // namespace xpu::trace

#endif  // TENSORFLOW_PLUGIN_TRACE_TRACE_EVENTS_H_
