// How near the update rules come to what the memory can do: bytes moved per second by each rule (SGD reads p and g and
// writes p: 3 streams; momentum 5, Adam 7) beside a triad a ← b + s·c that moves the same number of bytes, in turns
// within one run. The caches also read a before it is written, which isn't counted: a rule, writing in place, may
// exceed 1. JSON lines on stdout, a table on stderr.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "muster/optim/kernel.h"
#include "muster/optim/update_rule.h"

namespace muster {
namespace {

struct TriadLoop {
  [[gnu::always_inline]] static void Run(Loose<float>* __restrict a, const Loose<float>* __restrict b,
                                         const Loose<float>* __restrict c, size_t count, float scale) {
    for (size_t i = 0; i < count; ++i) a[i].value = b[i].value + scale * c[i].value;
  }
};

template <typename Work>
double SecondsOf(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Result {
  double rule_gbytes_per_s = 0;
  double triad_gbytes_per_s = 0;
};

Result Measure(const UpdateRule& rule, size_t count, int repeats) {
  const size_t streams = 3 + 2 * rule.slots().size();  // p and each slot are read and written, g is read
  std::vector<float> value(count, 1.0f), gradient(count, 1e-3f);
  std::vector<std::vector<float>> slots(rule.slots().size(), std::vector<float>(count, 1e-3f));
  std::vector<MutableByteSpan> spans;
  for (auto& slot : slots) spans.push_back(AsMutableBytes(slot.data(), count));
  const size_t triad_count = count * streams / 3;
  std::vector<float> a(triad_count, 0.0f), b(triad_count, 1.0f), c(triad_count, 2.0f);

  std::vector<double> rule_seconds, triad_seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double r = SecondsOf([&] {
      rule.Apply(DType::kFloat32, AsMutableBytes(value.data(), count), spans, AsBytes(gradient.data(), count),
                 {.learning_rate = 1e-6, .t = static_cast<uint64_t>(i) + 1});
    });
    const double t = SecondsOf([&] {
      RunLoop<TriadLoop>(Elements<float>(AsMutableBytes(a.data(), triad_count), triad_count),
                         Elements<float>(AsBytes(b.data(), triad_count), triad_count),
                         Elements<float>(AsBytes(c.data(), triad_count), triad_count), triad_count, 0.5f);
    });
    if (i == 0) continue;  // warms pages and clock
    rule_seconds.push_back(r);
    triad_seconds.push_back(t);
  }
  return {.rule_gbytes_per_s = 1e-9 * static_cast<double>(count * streams * sizeof(float)) / Median(rule_seconds),
          .triad_gbytes_per_s = 1e-9 * static_cast<double>(triad_count * 3 * sizeof(float)) / Median(triad_seconds)};
}

// One JSON line and one line of the table.
void Report(RuleKind kind, const Result& result) {
  const double ratio = result.rule_gbytes_per_s / result.triad_gbytes_per_s;
  std::printf(
      "{\"bench\":\"optim\",\"rule\":\"%s\",\"gbytes_per_s\":%.2f,\"triad_gbytes_per_s\":%.2f,\"ratio\":%.3f}\n",
      RuleName(kind).c_str(), result.rule_gbytes_per_s, result.triad_gbytes_per_s, ratio);
  std::fflush(stdout);
  std::fprintf(stderr, "%-10s %12.2f %12.2f %7.3f\n", RuleName(kind).c_str(), result.rule_gbytes_per_s,
               result.triad_gbytes_per_s, ratio);
}

int Main(int argc, char** argv) {
  CLI::App app("Bytes moved per second by each update rule, beside a triad");
  size_t megabytes = 100;
  int repeats = 15;
  app.add_option("--megabytes", megabytes, "size of the variable")->check(CLI::Range(1, 4000))->capture_default_str();
  app.add_option("--repeats", repeats, "timed passes; the median counts")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  std::fprintf(stderr, "%-10s %12s %12s %7s\n", "rule", "GB/s", "triad GB/s", "ratio");
  for (const RuleKind kind : {RuleKind::kSgd, RuleKind::kMomentum, RuleKind::kAdam}) {
    const auto rule = MakeUpdateRule({.kind = kind});
    if (!rule.ok()) {
      std::fprintf(stderr, "%s\n", rule.status().ToString().c_str());
      return 1;
    }
    Report(kind, Measure(**rule, megabytes * 1000 * 1000 / sizeof(float), repeats));
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
