// `bench optim`: how close the update rules come to the speed of the memory: bytes moved per second by each rule and
// type (variable and slots are read and written, the gradient is read) beside a triad a ← b + s·c that moves the same
// number of bytes, in turns in one run. The caches also read a before it is written, which isn't counted, so a rule,
// which writes in place, may exceed 1. Also updates of single rows, 4,096 random ones of 64 floats out of a million,
// beside copying the same rows in the same order out and back without prefetching. JSON lines on stdout, tables on
// stderr.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/support/rounds.h"
#include "muster/optim/kernels/kernel.h"
#include "muster/optim/rule_options.h"
#include "muster/optim/sparse_rows.h"

namespace muster {
namespace {

struct TriadLoop {
  [[gnu::always_inline]] static void Run(Loose<float>* __restrict a, const Loose<float>* __restrict b,
                                         const Loose<float>* __restrict c, size_t count, float scale) {
    for (size_t i = 0; i < count; ++i) a[i].value = b[i].value + scale * c[i].value;
  }
};

struct Result {
  double rule_gbytes_per_s = 0;
  double triad_gbytes_per_s = 0;
};

// A variable of zeros with its slots and a gradient.
struct Variable {
  Variable(const UpdateRule& rule, DType type, size_t count)
      : dtype(type),
        value(count * DTypeSize(type)),
        gradient(value.size()),
        slots(rule.slots().size(), std::vector<std::byte>(count * DTypeSize(SlotDType(type)))) {
    for (auto& slot : slots) spans.emplace_back(slot);
  }
  size_t bytes_moved() const { return 2 * value.size() + gradient.size() + 2 * TotalBytes(spans); }

  const DType dtype;
  std::vector<std::byte> value, gradient;
  std::vector<std::vector<std::byte>> slots;
  std::vector<MutableByteSpan> spans;
};

Result Measure(const UpdateRule& rule, DType dtype, size_t count, int repeats) {
  Variable variable(rule, dtype, count);
  const size_t triad_count = variable.bytes_moved() / (3 * sizeof(float));
  std::vector<float> a(triad_count, 0.0f), b(triad_count, 1.0f), c(triad_count, 2.0f);

  std::vector<double> rule_seconds, triad_seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double r = bench::SecondsOf([&] {
      rule.Apply(dtype, variable.value, variable.spans, variable.gradient,
                 {.learning_rate = 1e-6, .t = static_cast<uint64_t>(i) + 1});
    });
    const double t = bench::SecondsOf([&] {
      RunLoop<TriadLoop>(Elements<float>(AsMutableBytes(a.data(), triad_count), triad_count),
                         Elements<float>(AsBytes(b.data(), triad_count), triad_count),
                         Elements<float>(AsBytes(c.data(), triad_count), triad_count), triad_count, 0.5f);
    });
    if (i == 0) continue;  // the first pass warms pages and clock
    rule_seconds.push_back(r);
    triad_seconds.push_back(t);
  }
  return {
      .rule_gbytes_per_s = 1e-9 * static_cast<double>(variable.bytes_moved()) / bench::Median(rule_seconds),
      .triad_gbytes_per_s = 1e-9 * static_cast<double>(triad_count * 3 * sizeof(float)) / bench::Median(triad_seconds)};
}

// Writes one JSON line and one line of the table.
void Report(const std::string& rule, DType dtype, const Result& result) {
  const double ratio = result.rule_gbytes_per_s / result.triad_gbytes_per_s;
  std::printf(
      "{\"bench\":\"optim\",\"rule\":\"%s\",\"dtype\":\"%s\",\"gbytes_per_s\":%.2f,"
      "\"triad_gbytes_per_s\":%.2f,\"ratio\":%.3f}\n",
      rule.c_str(), DTypeName(dtype).c_str(), result.rule_gbytes_per_s, result.triad_gbytes_per_s, ratio);
  std::fflush(stdout);
  std::fprintf(stderr, "%-20s %-10s %12.2f %12.2f %7.3f\n", rule.c_str(), DTypeName(dtype).c_str(),
               result.rule_gbytes_per_s, result.triad_gbytes_per_s, ratio);
}

struct NamedRule {
  std::string name;
  RuleSpec spec;
};
std::vector<NamedRule> Rules() {
  return {{"sgd", Sgd()},
          {"sgd, clipped", Sgd({.weight_decay = 1e-4, .clip = {ClipKind::kValue, 1}})},
          {"momentum", Momentum()},
          {"nesterov", Momentum({.nesterov = true})},
          {"adagrad", Adagrad()},
          {"adam", Adam()},
          {"adamw", AdamW()},
          {"rmsprop", RmsProp()},
          {"rmsprop, all slots", RmsProp({.momentum = 0.9, .centered = true})},
          {"adadelta", Adadelta()},
          {"ftrl", Ftrl()},
          {"add", PlainAdd()}};
}

constexpr size_t kRows = 1000000;
constexpr size_t kWidth = 64;
constexpr size_t kTouched = 4096;

// Copies the rows of `value` at `indices` to `rows`, or back.
void CopyRows(const std::vector<int64_t>& indices, std::vector<std::byte>& value, std::vector<std::byte>& rows,
              bool back) {
  constexpr size_t kRowBytes = kWidth * sizeof(float);
  for (size_t i = 0; i < indices.size(); ++i) {
    std::byte* in_value = value.data() + indices[i] * kRowBytes;
    std::byte* in_rows = rows.data() + i * kRowBytes;
    std::memcpy(back ? in_value : in_rows, back ? in_rows : in_value, kRowBytes);
  }
}

bool MeasureRows(const NamedRule& named, const UpdateRule& rule, int repeats) {
  Variable variable(rule, DType::kFloat32, kRows * kWidth);
  std::vector<std::byte> gradients(kTouched * kWidth * sizeof(float)), rows(gradients.size());
  std::mt19937_64 random(1);
  std::vector<int64_t> indices(kTouched);
  std::vector<double> rule_seconds, copy_seconds;
  for (int i = 0; i <= 10 * repeats; ++i) {
    for (int64_t& index : indices) index = static_cast<int64_t>(random() % kRows);
    absl::Status applied;
    const double r = bench::SecondsOf([&] {
      applied = ApplyRows(rule, {DType::kFloat32, kWidth, variable.value, variable.spans}, indices, gradients,
                          {.learning_rate = 1e-6, .t = static_cast<uint64_t>(i) + 1});
    });
    for (int64_t& index : indices) index = static_cast<int64_t>(random() % kRows);
    const double c = bench::SecondsOf([&] {
      CopyRows(indices, variable.value, rows, false);
      CopyRows(indices, variable.value, rows, true);
    });
    if (!applied.ok()) {
      std::fprintf(stderr, "%s\n", applied.ToString().c_str());
      return false;
    }
    if (i == 0) continue;
    rule_seconds.push_back(r);
    copy_seconds.push_back(c);
  }
  const double microseconds = 1e6 * bench::Median(rule_seconds), copy_microseconds = 1e6 * bench::Median(copy_seconds);
  std::printf("{\"bench\":\"optim_rows\",\"rule\":\"%s\",\"microseconds\":%.0f,\"copy_microseconds\":%.0f}\n",
              named.name.c_str(), microseconds, copy_microseconds);
  std::fprintf(stderr, "%-20s %12.0f %12.0f %7.3f\n", named.name.c_str(), microseconds, copy_microseconds,
               microseconds / copy_microseconds);
  return true;
}

int Main(int argc, char** argv) {
  CLI::App app("Bytes moved per second by each update rule, beside a triad; then single rows");
  size_t megabytes = 100;
  int repeats = 15;
  app.add_option("--megabytes", megabytes, "size of the variable")->check(CLI::Range(1, 4000))->capture_default_str();
  app.add_option("--repeats", repeats, "timed passes; the median counts")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  std::fprintf(stderr, "%-20s %-10s %12s %12s %7s\n", "rule", "type", "GB/s", "triad GB/s", "ratio");
  for (const NamedRule& named : Rules()) {
    const auto rule = MakeUpdateRule(named.spec);
    if (!rule.ok()) {
      std::fprintf(stderr, "%s\n", rule.status().ToString().c_str());
      return 1;
    }
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
      Report(named.name, dtype, Measure(**rule, dtype, megabytes * 1000 * 1000 / DTypeSize(dtype), repeats));
  }
  std::fprintf(stderr, "\n%-20s %12s %12s %7s\n", "4,096 rows", "us", "copy us", "ratio");
  for (const NamedRule& named : Rules()) {
    const auto rule = MakeUpdateRule(named.spec);
    if (SupportsRows(named.spec.kind) && !MeasureRows(named, **rule, repeats)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
