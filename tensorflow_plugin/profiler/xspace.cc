#include "tensorflow_plugin/profiler/xspace.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace xpu::profiler {
namespace {

using trace::Event;
using trace::Kind;
using trace::NameId;
using trace::Trace;

// Protobuf's wire format.
class Message {
 public:
  void Varint(int field, uint64_t value) {
    Tag(field, 0);
    Raw(value);
  }
  void Double(int field, double value) {
    Tag(field, 1);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    bytes_.append(bytes, sizeof(bytes));
  }
  void Bytes(int field, std::string_view value) {
    Tag(field, 2);
    Raw(value.size());
    bytes_.append(value);
  }
  void Sub(int field, const Message& message) { Bytes(field, message.bytes_); }
  std::string& bytes() { return bytes_; }
  void Clear() { bytes_.clear(); }

 private:
  void Tag(int field, int type) { Raw(static_cast<uint64_t>(field) << 3 | type); }
  void Raw(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<char>(value | 128));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

// The fields of xplane.proto.
namespace space {
constexpr int kPlanes = 1, kWarnings = 3;
}
namespace plane {
constexpr int kId = 1, kName = 2, kLines = 3, kEventMetadata = 4, kStatMetadata = 5, kStats = 6;
}
namespace line {
constexpr int kId = 1, kName = 2, kTimestampNs = 3, kEvents = 4, kDisplayId = 10, kDisplayName = 11;
}
namespace event {
constexpr int kMetadataId = 1, kOffsetPs = 2, kDurationPs = 3, kStats = 4;
}
namespace stat {
constexpr int kMetadataId = 1, kDouble = 2, kUint64 = 3, kInt64 = 4, kString = 5, kRef = 7;
}
namespace metadata {
constexpr int kId = 1, kName = 2;
}
constexpr int kKey = 1, kValue = 2;  // of a map's entry

// The strings of a plane that ids stand for.
class Metadata {
 public:
  uint64_t Id(const std::string& text) { return ids_.emplace(text, ids_.size() + 1).first->second; }
  void Write(int field, Message* plane) const {
    for (const auto& [text, id] : ids_) {
      Message value, entry;
      value.Varint(metadata::kId, id);
      value.Bytes(metadata::kName, text);
      entry.Varint(kKey, id);
      entry.Sub(kValue, value);
      plane->Sub(field, entry);
    }
  }

 private:
  std::map<std::string, uint64_t> ids_;
};

class Plane {
 public:
  Plane(uint64_t id, const std::string& device, const Trace& recorded) : recorded_(recorded) {
    plane_.Varint(plane::kId, id);
    plane_.Bytes(plane::kName, "/device:CUSTOM:" + device);
  }

  void Capabilities(const DeviceInfo& info) {
    const auto add = [this](const char* name, double value) {
      if (value <= 0) return;
      Message stat;
      stat.Varint(stat::kMetadataId, stats_.Id(name));
      stat.Double(stat::kDouble, value);
      plane_.Sub(plane::kStats, stat);
    };
    add("peak_teraflops_per_second", info.gflops * 1e-3);
    add("peak_hbm_bw_gigabytes_per_second", static_cast<double>(info.bandwidth_bytes_per_s) * 1e-9);
    Message vendor;
    vendor.Varint(stat::kMetadataId, stats_.Id("device_vendor"));
    vendor.Bytes(stat::kString, info.vendor);
    plane_.Sub(plane::kStats, vendor);
  }

  // The events of one queue, by begin.
  void Queue(const std::string& what, const std::vector<Event>& events) {
    // Within a list are its commands; whatever else overlaps was side by side.
    struct Open {
      uint64_t end_ns;
      bool is_list;
    };
    std::vector<std::vector<Event>> lanes;
    std::vector<std::vector<Open>> open;  // by lane
    for (const Event& e : events) {
      const auto fits = [&e](std::vector<Open>& within) {
        while (!within.empty() && within.back().end_ns <= e.begin_ns) within.pop_back();
        return within.empty() || (within.back().is_list && e.end_ns <= within.back().end_ns);
      };
      const size_t lane = std::find_if(open.begin(), open.end(), fits) - open.begin();
      if (lane == lanes.size()) {
        lanes.emplace_back();
        open.emplace_back();
      }
      lanes[lane].push_back(e);
      open[lane].push_back({e.end_ns, e.label.kind == Kind::kList});
    }
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      Line(lane == 0 ? what : what + ", side by side " + std::to_string(lane), lanes[lane], /*ops=*/false);
    }
    const std::vector<Event> ops = OpsOf(events);
    if (!ops.empty()) Line(what + ": ops", ops, /*ops=*/true);
  }

  Message& Finish() {
    events_.Write(plane::kEventMetadata, &plane_);
    stats_.Write(plane::kStatMetadata, &plane_);
    return plane_;
  }

 private:
  // From the first to the last of the commands in a row that are of one op.
  static std::vector<Event> OpsOf(const std::vector<Event>& events) {
    std::vector<Event> ops;
    for (const Event& e : events) {
      if (e.label.op == 0 || e.label.kind > Kind::kFill) continue;
      if (!ops.empty() && ops.back().label.op == e.label.op) {
        Event& last = ops.back();
        last.end_ns = std::max(last.end_ns, e.end_ns);
        last.label.flops += e.label.flops;
        last.label.bytes += e.label.bytes;
        continue;
      }
      // An event that began side by side with the last is shown behind it.
      ops.push_back(e);
      if (ops.size() > 1) {
        uint64_t& begin = ops.back().begin_ns;
        begin = std::max(begin, ops[ops.size() - 2].end_ns);
        ops.back().end_ns = std::max(begin, ops.back().end_ns);
      }
    }
    return ops;
  }

  void Line(const std::string& name, const std::vector<Event>& events, bool ops) {
    Message line, written;
    line.Varint(line::kId, ++num_lines_);
    line.Varint(line::kDisplayId, num_lines_);
    line.Bytes(line::kName, name);
    line.Bytes(line::kDisplayName, name);
    line.Varint(line::kTimestampNs, recorded_.begin_ns);
    for (const Event& e : events) {
      Write(e, ops, &written);
      line.Sub(line::kEvents, written);
    }
    plane_.Sub(plane::kLines, line);
  }

  const std::string& Text(NameId name) {
    auto [found, fresh] = texts_.try_emplace(name);
    if (fresh) found->second = trace::TextOf(name);
    return found->second;
  }

  void Write(const Event& e, bool ops, Message* out) {
    out->Clear();
    // An event that was enqueued before the session began with it.
    const uint64_t begin = std::max(e.begin_ns, recorded_.begin_ns), end = std::max(e.end_ns, begin);
    out->Varint(event::kMetadataId, EventId(ops ? e.label.op : e.label.what));
    out->Varint(event::kOffsetPs, (begin - recorded_.begin_ns) * 1000);
    out->Varint(event::kDurationPs, (end - begin) * 1000);
    Message stat;
    const auto number = [&](uint64_t id, int64_t value) {
      stat.Clear();
      stat.Varint(stat::kMetadataId, id);
      stat.Varint(stat::kInt64, static_cast<uint64_t>(value));
      out->Sub(event::kStats, stat);
    };
    const auto text = [&](uint64_t id, uint64_t value) {
      stat.Clear();
      stat.Varint(stat::kMetadataId, id);
      stat.Varint(stat::kRef, value);
      out->Sub(event::kStats, stat);
    };
    text(kind_id_, KindId(e.label.kind));
    if (e.label.op != 0) text(op_id_, OpId(e.label));
    const auto ratio = [&](uint64_t id, int64_t over) {
      if (over == 0) return;
      stat.Clear();
      stat.Varint(stat::kMetadataId, id);
      stat.Double(stat::kDouble, static_cast<double>(e.label.flops) / static_cast<double>(over));
      out->Sub(event::kStats, stat);
    };
    if (e.label.bytes != 0) number(bytes_id_, e.label.bytes);
    if (e.label.flops != 0) {
      number(flops_id_, e.label.flops);
      // The trace viewer keeps `flops` to itself.
      number(shown_flops_id_, e.label.flops);
      ratio(rate_id_, static_cast<int64_t>(end - begin));
      ratio(intensity_id_, e.label.bytes);
    }
  }

  uint64_t EventId(NameId name) {
    auto [found, fresh] = event_ids_.try_emplace(name);
    if (fresh) found->second = events_.Id(Text(name));
    return found->second;
  }
  uint64_t KindId(Kind kind) { return stats_.Id(trace::NameOf(kind)); }
  uint64_t OpId(const trace::Label& label) {
    auto [found, fresh] = op_ids_.try_emplace(static_cast<uint64_t>(label.op) << 32 | label.op_type);
    if (fresh) found->second = stats_.Id(Text(label.op) + ":" + Text(label.op_type));
    return found->second;
  }

  const Trace& recorded_;
  Message plane_;
  Metadata events_, stats_;
  uint64_t num_lines_ = 0;
  std::unordered_map<NameId, std::string> texts_;
  std::unordered_map<NameId, uint64_t> event_ids_;
  std::unordered_map<uint64_t, uint64_t> op_ids_;
  const uint64_t kind_id_ = stats_.Id("kind"), op_id_ = stats_.Id("tf_op"), flops_id_ = stats_.Id("flops"),
                 bytes_id_ = stats_.Id("bytes_accessed"), shown_flops_id_ = stats_.Id("floating_point_operations"),
                 rate_id_ = stats_.Id("gflop_per_second"), intensity_id_ = stats_.Id("flop_per_byte");
};

}  // namespace

std::string EncodeXSpace(const Trace& recorded, const std::vector<DeviceSpeed>& speeds) {
  std::map<uint32_t, std::vector<Event>> by_line;
  for (const Event& e : recorded.events) by_line[e.line].push_back(e);
  std::map<std::string, std::vector<uint32_t>> by_device;
  for (const auto& [number, events] : by_line) by_device[recorded.lines[number - 1].device].push_back(number);
  Message space;
  uint64_t id = 0;
  for (const auto& [device, numbers] : by_device) {
    Plane plane(++id, device, recorded);
    for (const DeviceSpeed& speed : speeds) {
      if (speed.device == device) plane.Capabilities(speed.info);
    }
    for (uint32_t number : numbers) plane.Queue(recorded.lines[number - 1].what, by_line[number]);
    space.Sub(space::kPlanes, plane.Finish());
  }
  if (recorded.dropped > 0) {
    space.Bytes(space::kWarnings, "XPU: " + std::to_string(recorded.dropped) + " events beyond " +
                                      std::to_string(trace::kMaxEvents) + " were not kept: profile fewer steps");
  }
  return std::move(space.bytes());
}

}  // namespace xpu::profiler
