#include "muster/observe/trace_merge.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kWriteBytes = 1 << 20;

struct Source {
  std::string text;
  TracePart part;
};

// Orders tasks as in a plan: ps first, then the chief, the workers, the evaluator. The lives of one task keep their
// order.
int Rank(const std::string& task) {
  const std::string job = task.substr(0, task.find(':'));
  return job == "ps" ? 0 : job == "chief" || job == "master" ? 1 : job == "worker" ? 2 : 3;
}

int IndexOf(const std::string& task) {
  const size_t colon = task.find(':');
  return colon == std::string::npos ? 0 : std::atoi(task.c_str() + colon + 1);
}

bool Before(const TraceIdentity& a, const TraceIdentity& b) {
  const auto key = [](const TraceIdentity& of) {
    return std::make_tuple(Rank(of.task), IndexOf(of.task), of.task, of.begin);
  };
  return key(a) < key(b);
}

// Returns the host of ps 0, whose clock is the common one. Without a part of ps 0: the host that all tasks share, else
// unknown.
std::string CommonHost(const std::vector<std::unique_ptr<Source>>& sources) {
  const std::string& first = sources.front()->part.identity.host;
  for (const auto& source : sources)
    if (source->part.identity.task == "ps:0") return source->part.identity.host;
  const bool one = std::all_of(sources.begin(), sources.end(),
                               [&](const auto& source) { return source->part.identity.host == first; });
  return one ? first : "";
}

// Buffers a file's writes into large pieces.
class Output {
 public:
  explicit Output(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  void Line(const std::string& line) {
    absl::StrAppend(&text_, first_ ? "" : ",\n", line);
    first_ = false;
    if (text_.size() >= kWriteBytes) Write();
  }
  void Text(const std::string& text) { text_ += text; }
  absl::Status Close() {
    Write();
    status_.Update(file_->Close());
    return status_;
  }

 private:
  void Write() {
    if (status_.ok()) status_ = file_->Append(AsBytes(text_.data(), text_.size()));
    text_.clear();
  }

  const std::unique_ptr<WritableFile> file_;
  std::string text_;
  bool first_ = true;
  absl::Status status_;
};

std::string MetadataLine(int64_t pid, const char* name, const nlohmann::json& args) {
  return nlohmann::ordered_json{{"pid", pid}, {"ph", "M"}, {"name", name}, {"args", args}}.dump();
}

// Returns the earliest event of all, on the common clock.
int64_t Earliest(const std::vector<std::unique_ptr<Source>>& sources, const std::vector<ClockAlignment>& clocks) {
  int64_t earliest = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < sources.size(); ++i)
    for (const std::string_view line : sources[i]->part.events)
      if (const auto time = TimeOf(line)) earliest = std::min(earliest, *time + clocks[i].OffsetAt(*time));
  return earliest == std::numeric_limits<int64_t>::max() ? 0 : earliest;
}

void WriteTask(const TracePart& part, const ClockAlignment& clock, int64_t pid, int64_t origin, MergedTask& task,
               Output& output) {
  output.Line(MetadataLine(pid, "process_name", {{"name", task.task}}));
  output.Line(MetadataLine(pid, "process_sort_index", {{"sort_index", pid}}));
  for (const std::string_view line : part.metadata)
    if (const auto moved = MovedLine(line, 0, pid)) output.Line(*moved);
  for (const std::string_view line : part.events) {
    const auto time = TimeOf(line);
    if (!time) continue;
    const auto moved = MovedLine(line, clock.OffsetAt(*time) - origin, pid);
    if (!moved) continue;
    output.Line(*moved);
    ++task.events;
  }
}

nlohmann::ordered_json Describe(const std::vector<MergedTask>& tasks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MergedTask& task : tasks)
    list.push_back({{"task", task.task},
                    {"offset_us", static_cast<double>(task.offset) * 1e-3},
                    {"uncertainty_us", static_cast<double>(task.uncertainty) * 1e-3},
                    {"clock", task.uncertainty < 0 ? "unknown"
                              : task.measured      ? "measured"
                                                   : "the same host's"},
                    {"events", task.events},
                    {"left_out", task.left_out},
                    {"ended", task.ended}});
  return list;
}

absl::StatusOr<std::vector<std::unique_ptr<Source>>> ReadParts(FileSystem& files,
                                                               const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<Source>> sources;
  for (const std::string& path : paths) {
    auto source = std::make_unique<Source>();
    ASSIGN_OR_RETURN(source->text, files.ReadFile(path));
    auto part = ParsePart(source->text);
    if (!part.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", part.status().message()));
    source->part = *std::move(part);
    sources.push_back(std::move(source));
  }
  if (sources.empty()) return absl::InvalidArgumentError("there are no parts to merge");
  std::sort(sources.begin(), sources.end(),
            [](const auto& a, const auto& b) { return Before(a->part.identity, b->part.identity); });
  return sources;
}

}  // namespace

ClockAlignment::ClockAlignment(const TracePart& part, const std::string& common_host) {
  const bool same_host = !common_host.empty() && part.identity.host == common_host;
  // A measurement is no better than its round trip. On one host it can therefore only disprove that the clocks are
  // equal (containers may have monotonic clocks of their own).
  const bool contradicted = std::any_of(part.clock.begin(), part.clock.end(), [](const ClockSample& sample) {
    return std::abs(sample.offset) > sample.uncertainty;
  });
  if (same_host && !contradicted) return;
  samples_ = part.clock;
  uncertainty_ = samples_.empty() && part.identity.task != "ps:0" ? -1 : 0;
  for (const ClockSample& sample : samples_) uncertainty_ = std::max(uncertainty_, sample.uncertainty);
}

int64_t ClockAlignment::OffsetAt(int64_t nanos) const {
  if (samples_.empty()) return 0;
  const auto after =
      std::find_if(samples_.begin(), samples_.end(), [nanos](const ClockSample& sample) { return sample.at >= nanos; });
  if (after == samples_.begin()) return after->offset;
  if (after == samples_.end()) return samples_.back().offset;
  const ClockSample& before = *(after - 1);
  const double share = static_cast<double>(nanos - before.at) / static_cast<double>(after->at - before.at);
  return before.offset + static_cast<int64_t>(share * static_cast<double>(after->offset - before.offset));
}

absl::StatusOr<std::vector<MergedTask>> MergeTrace(FileSystem& files, const std::vector<std::string>& parts,
                                                   const std::string& output_path) {
  ASSIGN_OR_RETURN(const auto sources, ReadParts(files, parts));
  const std::string host = CommonHost(sources);
  std::vector<ClockAlignment> clocks;
  std::vector<MergedTask> tasks;
  std::map<std::string, int> lives;
  for (const auto& source : sources) {
    const TracePart& part = source->part;
    const std::string& name = part.identity.task;
    const int life = ++lives[name];
    clocks.emplace_back(part, host);
    tasks.push_back({.task = life == 1 ? name : absl::StrCat(name, " (life ", life, ")"),
                     .offset = clocks.back().OffsetAt(part.identity.begin),
                     .uncertainty = clocks.back().uncertainty(),
                     .measured = clocks.back().measured(),
                     .ended = part.ended,
                     .left_out = part.left_out});
  }
  const int64_t origin = Earliest(sources, clocks);
  ASSIGN_OR_RETURN(auto file, files.OpenForWriting(output_path));
  Output output(std::move(file));
  output.Text("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  for (size_t i = 0; i < sources.size(); ++i)
    WriteTask(sources[i]->part, clocks[i], static_cast<int64_t>(i) + 1, origin, tasks[i], output);
  output.Text(absl::StrCat("\n],\"otherData\":{\"tasks\":", Describe(tasks).dump(), "}}\n"));
  RETURN_IF_ERROR(output.Close());
  return tasks;
}

}  // namespace muster
