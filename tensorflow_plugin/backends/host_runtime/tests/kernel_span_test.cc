// The names of engines in trace events.
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace xpu::host_runtime {
namespace {

trace::Label LabelOf(const char* what) {
  trace::Label label;
  label.what = trace::Intern(what);
  return label;
}

// The names of the events of `run`, which gets a line; the outer one of two comes first.
template <typename Run>
std::vector<std::string> Recorded(const Run& run) {
  EXPECT_TRUE(trace::Start());
  trace::Line line;
  run(line);
  std::vector<std::string> names;
  for (const trace::Event& event : trace::Stop().events) names.push_back(trace::TextOf(event.label.what));
  return names;
}

using Names = std::vector<std::string>;

TEST(KernelSpan, HasTheFirstEngineThatIsNamed) {
  const trace::Label label = LabelOf("Product");
  EXPECT_EQ(Recorded([&](trace::Line& line) {
              const KernelSpan span(line, label);
              KernelSpan::SetEngine("windows");
              KernelSpan::SetEngine("panels");  // which multiplies them
            }),
            Names{"Product: windows"});
  EXPECT_EQ(trace::TextOf(label.what), "Product");
}

TEST(KernelSpan, HasNoEngineIfNoneIsNamed) {
  const trace::Label label = LabelOf("Product");
  EXPECT_EQ(Recorded([&](trace::Line& line) { const KernelSpan span(line, label); }), Names{"Product"});
}

TEST(KernelSpan, HasTheWayOfAnEpilogue) {
  const trace::Label label = LabelOf("Product with an epilogue");
  EXPECT_EQ(Recorded([&](trace::Line& line) {
              const KernelSpan span(line, label);
              KernelSpan::SetEpilogue("in registers");
            }),
            Names{"Product with an epilogue in registers"});
  EXPECT_EQ(Recorded([&](trace::Line& line) {
              const KernelSpan span(line, label);
              KernelSpan::SetEngine("panels");
              KernelSpan::SetEpilogue("in registers");
            }),
            Names{"Product with an epilogue in registers: panels"});
}

TEST(KernelSpan, OfEachCommandAlone) {
  const trace::Label first = LabelOf("First"), second = LabelOf("Second");
  EXPECT_EQ(Recorded([&](trace::Line& line) {
              const KernelSpan outer(line, first);
              {
                const KernelSpan inner(line, second);
                KernelSpan::SetEngine("panels");
              }
              std::thread([] { KernelSpan::SetEngine("another thread's"); }).join();
              KernelSpan::SetEngine("windows");
            }),
            (Names{"First: windows", "Second: panels"}));
}

TEST(KernelSpan, NobodyListens) {
  KernelSpan::SetEngine("panels");
  trace::Line line;
  const trace::Label label = LabelOf("Product");
  EXPECT_EQ(Recorded([&](trace::Line& inner) { const KernelSpan span(inner, label); }), Names{"Product"});
  const KernelSpan span(line, label);
  KernelSpan::SetEngine("panels");
}

}  // namespace
}  // namespace xpu::host_runtime
