// `bench input`: how many minibatches per second an input pipeline makes: of rows in memory, of IDX and of CSV files,
// with Map and Prefetch, beside its limit (memcpy of as many bytes) and beside its consumer (work A: the fastest plain
// loop that trains 784-100-10 on minibatches of 100). In turns in one process; the median of the rounds counts. JSON
// lines on stdout, a table on stderr; exit code 1 if the goal is missed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/support/local_loop.h"
#include "bench/support/rounds.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/status_macros.h"
#include "muster/data/dataset/dataset.h"

namespace muster {
namespace {

// The rate of the one-thread pipeline as a multiple of work A's.
constexpr double kGoal = 5;

constexpr int64_t kRows = 55000;
constexpr int64_t kWidth = 784;
constexpr int64_t kBatch = 100;
constexpr int64_t kCsvRows = 2000;  // 9 MB of text, read repeatedly
constexpr size_t kBatchBytes = kBatch * (kWidth * sizeof(float) + sizeof(int64_t));

struct Contender {
  std::string name;
  std::function<absl::Status()> step;  // makes a minibatch, or trains on one
  std::vector<double> rates = {};      // per second, for each round
};

class Noise {
 public:
  uint32_t Next(uint32_t below) { return ((state_ = state_ * 1664525 + 1013904223) >> 8) % below; }

 private:
  uint32_t state_ = 1;
};

Example MakeRows() {
  Noise noise;
  Example rows;
  rows.features.resize(1);
  rows.features[0].name = "features";
  rows.features[0].value.Reset(DType::kFloat32, {kRows, kWidth});
  for (float& value : rows.features[0].value.As<float>()) value = static_cast<float>(noise.Next(1000)) * 0.001f;
  rows.labels.Reset(DType::kInt64, {kRows});
  for (int64_t& label : rows.labels.As<int64_t>()) label = noise.Next(10);
  rows.has_labels = true;
  return rows;
}

std::string IdxContent(const std::vector<uint32_t>& shape, uint32_t below) {
  Noise noise;
  std::string content = {0, 0, 8, static_cast<char>(shape.size())};
  size_t elements = 1;
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) content += static_cast<char>(size >> shift);
    elements *= size;
  }
  for (size_t i = 0; i < elements; ++i) content += static_cast<char>(noise.Next(below));
  return content;
}

std::string CsvContent() {
  Noise noise;
  std::string content;
  for (int64_t row = 0; row < kCsvRows; ++row) {
    for (int64_t column = 0; column < kWidth; ++column) absl::StrAppendFormat(&content, "0.%03d,", noise.Next(1000));
    absl::StrAppend(&content, noise.Next(10), "\n");
  }
  return content;
}

absl::Status Double(Example& example) {
  for (float& value : example.features[0].value.As<float>()) value *= 2;
  return absl::OkStatus();
}

// A step draws a minibatch of `data` into the same memory each time, as a training loop does.
absl::StatusOr<Contender> Drawing(std::string name, const Dataset& data) {
  ASSIGN_OR_RETURN(std::unique_ptr<ExampleStream> opened, data.Open());
  const std::shared_ptr<ExampleStream> stream = std::move(opened);
  const auto batch = std::make_shared<Example>();
  return Contender{std::move(name), [stream, batch]() -> absl::Status {
                     ASSIGN_OR_RETURN(const bool got, stream->Next(*batch));
                     return got ? absl::OkStatus() : absl::InternalError("an endless data set has ended");
                   }};
}

Contender Copying() {
  const auto from = std::make_shared<std::vector<char>>(kRows / kBatch * kBatchBytes, 'x');
  const auto into = std::make_shared<std::vector<char>>(kBatchBytes);
  return {"memcpy of as many bytes", [from, into, at = size_t{0}]() mutable {
            std::memcpy(into->data(), from->data() + at, kBatchBytes);
            at = (at + kBatchBytes) % from->size();
            return absl::OkStatus();
          }};
}

Contender Training() {
  return {"work A: local training", [step = bench::MakeLocalStep({}, 1)] {
            step();
            return absl::OkStatus();
          }};
}

// `files` must outlive them. The first two are the references, and the third has a goal.
absl::StatusOr<std::vector<Contender>> Contenders(MemoryFileSystem& files) {
  RETURN_IF_ERROR(files.WriteFile("images", IdxContent({kRows, 28, 28}, 256)));
  RETURN_IF_ERROR(files.WriteFile("labels", IdxContent({kRows}, 10)));
  RETURN_IF_ERROR(files.WriteFile("rows.csv", CsvContent()));
  const Dataset shuffled = Dataset::FromMemory(MakeRows()).Shuffle({.seed = 1});
  const Dataset idx = Dataset::FromIdx("images", "labels", files).Shuffle({.seed = 1});
  const Dataset csv = Dataset::FromCsv({"rows.csv"}, {.header = CsvOptions::Header::kNone}, files);

  std::vector<Contender> contenders = {Copying(), Training()};
  const std::pair<const char*, Dataset> pipelines[] = {
      {"memory, one thread", shuffled.Batch(kBatch).Repeat()},
      {"memory, Prefetch", shuffled.Batch(kBatch).Repeat().Prefetch()},
      {"memory, Map", shuffled.Map(Double).Batch(kBatch).Repeat()},
      {"memory, Map on two threads", shuffled.Map(Double, {.threads = 2}).Batch(kBatch).Repeat()},
      {"IDX (bytes), one thread", idx.Batch(kBatch).Repeat()},
      {"CSV, line by line, one thread", csv.Batch(kBatch).Repeat()}};
  for (const auto& [name, data] : pipelines) {
    ASSIGN_OR_RETURN(contenders.emplace_back(), Drawing(name, data));
  }
  return contenders;
}

absl::Status Measure(Contender& contender, double seconds) {
  constexpr int kWarmUp = 5;
  for (int i = 0; i < kWarmUp; ++i) RETURN_IF_ERROR(contender.step());
  const auto begin = std::chrono::steady_clock::now();
  double taken = 0;
  int64_t steps = 0;
  for (; taken < seconds; ++steps) {
    RETURN_IF_ERROR(contender.step());
    taken = bench::SecondsSince(begin);
  }
  contender.rates.push_back(static_cast<double>(steps) / taken);
  return absl::OkStatus();
}

void Report(const Contender& contender, const Contender& copying, const Contender& training) {
  const auto [rate, least, most] = bench::SpreadOf(contender.rates);
  const double of_copying = bench::MedianRatio(contender.rates, copying.rates);
  const double of_training = bench::MedianRatio(contender.rates, training.rates);
  std::printf(
      "{\"bench\":\"input\",\"what\":\"%s\",\"per_second\":%.0f,\"least\":%.0f,\"most\":%.0f,"
      "\"of_memcpy\":%.3f,\"of_work_a\":%.2f}\n",
      contender.name.c_str(), rate, least, most, of_copying, of_training);
  std::fprintf(stderr, "%-32s %10.0f %10.0f %10.0f %10.3f %10.2f\n", contender.name.c_str(), rate, least, most,
               of_copying, of_training);
}

absl::StatusOr<bool> Run(int rounds, double seconds) {
  MemoryFileSystem files;
  ASSIGN_OR_RETURN(std::vector<Contender> contenders, Contenders(files));
  for (int round = 0; round < rounds; ++round)
    for (const size_t i : bench::Turns(contenders.size(), round)) RETURN_IF_ERROR(Measure(contenders[i], seconds));
  std::fprintf(stderr, "%-32s %10s %10s %10s %10s %10s\n", "minibatches of 100 a second", "median", "least", "most",
               "of memcpy", "of work A");
  for (const Contender& contender : contenders) Report(contender, contenders[0], contenders[1]);
  const double reached = bench::MedianRatio(contenders[2].rates, contenders[1].rates);
  const bool met = reached >= kGoal;
  std::fprintf(stderr, "%s makes %.1f times the minibatches that work A learns from; goal: at least %.0f: %s\n",
               contenders[2].name.c_str(), reached, kGoal, met ? "met" : "MISSED");
  return met;
}

int Main(int argc, char** argv) {
  CLI::App app("Minibatches a second that input pipelines make, beside memcpy and beside what training takes");
  double seconds = 0.5;
  int rounds = 5;
  app.add_option("--seconds", seconds, "length of each measurement")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "number of rounds; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto met = Run(rounds, seconds);
  if (!met.ok()) {
    std::fprintf(stderr, "bench input: %s\n", met.status().ToString().c_str());
    return 1;
  }
  return *met ? 0 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
