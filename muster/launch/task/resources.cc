#include "muster/launch/task/resources.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/control_groups.h"
#include "muster/base/os/processors.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/task/node_layout.h"

namespace muster {
namespace {

constexpr double kMegabyte = 1 << 20;
constexpr double kMostMemory = 1LL << 60;  // sums must fit into an int64_t

absl::Status MemoryMistake(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is no amount of memory; accepted: ", kMemoryForms));
}

// Returns the bytes of "GB", "GiB", "G", in any case; 0 if there is no such unit.
double MemoryUnit(absl::string_view unit) {
  if (unit.empty()) return kMegabyte;
  const std::string letters = absl::AsciiStrToLower(unit);
  const std::string rest = letters.substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib") return 0;
  switch (letters[0]) {
    case 'k':
      return 1 << 10;
    case 'm':
      return kMegabyte;
    case 'g':
      return 1 << 30;
    case 't':
      return 1LL << 40;
    default:
      return 0;
  }
}

// Reads the words of a file; empty if it can't be read.
std::vector<std::string> WordsOfMachine(const std::string& path) {
  const auto text = PosixFileSystem().ReadFile(path);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, absl::ByAnyChar(" \t\n"), absl::SkipWhitespace());
}

int64_t TotalMemory(const MachineFolders& folders) {
  const std::vector<std::string> words = WordsOfMachine(folders.proc + "/meminfo");
  int64_t kilobytes = 0;
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "MemTotal:" && absl::SimpleAtoi(words[i + 1], &kilobytes)) return kilobytes << 10;
  return 0;
}

}  // namespace

Resources Merged(const Resources& own, const Resources& defaults) {
  Resources merged = own;
  if (!merged.cpus) merged.cpus = defaults.cpus;
  if (!merged.mem_bytes) merged.mem_bytes = defaults.mem_bytes;
  if (!merged.gpus) merged.gpus = defaults.gpus;
  return merged;
}

absl::StatusOr<int64_t> ParseMemory(std::string_view text, std::string* warning) {
  const size_t digits = std::min(text.size(), text.find_first_not_of("0123456789."));
  const bool space = digits < text.size() && text[digits] == ' ';
  const absl::string_view unit = AbslView(text.substr(digits + (space ? 1 : 0)));
  const double bytes_each = space && unit.empty() ? 0 : MemoryUnit(unit);
  double number = 0;
  const std::string written(text.substr(0, digits));
  const bool is_number = digits > 0 && absl::ascii_isdigit(written.front()) && absl::ascii_isdigit(written.back()) &&
                         absl::SimpleAtod(written, &number);
  if (!is_number || bytes_each == 0) return MemoryMistake(text);
  const double bytes = std::floor(number * bytes_each);
  if (bytes < 1 || bytes > kMostMemory) return MemoryMistake(text);
  if (warning != nullptr && unit.empty() && number < 64)
    *warning = absl::StrCat(written, " is ", written, " MB, a bare number being MB; for GB write ", written, "GB");
  return static_cast<int64_t>(bytes);
}

std::string MemoryText(int64_t bytes) {
  if (bytes >= 1LL << 30) return absl::StrFormat("%.1f GB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= 1 << 20) return absl::StrFormat("%.0f MB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 1 << 10) return absl::StrFormat("%.0f KB", static_cast<double>(bytes) / (1 << 10));
  return absl::StrCat(bytes, " B");
}

Machine ThisMachine(const MachineFolders& folders) {
  Machine machine{.cores = UsableProcessors({}, {.proc = folders.proc, .cgroups = folders.cgroups}).count,
                  .mem_bytes = TotalMemory(folders),
                  .gpus = CountGpus(folders.gpus)};
  for (const ControlGroupFolders& group : ControlGroupsWith("memory", folders.proc, folders.cgroups)) {
    for (const std::string& folder : group.folders) {
      int64_t limit = 0;
      const std::vector<std::string> memory = WordsOfMachine(folder + "/memory.max");  // "max": none
      if (!memory.empty() && absl::SimpleAtoi(memory[0], &limit))
        machine.mem_bytes = machine.mem_bytes == 0 ? limit : std::min(machine.mem_bytes, limit);
    }
  }
  return machine;
}

std::string LacksFor(const Resources& wanted, const Machine& machine) {
  std::vector<std::string> lacks;
  if (wanted.cpus.value_or(0) > machine.cores)
    lacks.push_back(absl::StrCat(*wanted.cpus, " cpus, this machine has ", machine.cores));
  if (machine.mem_bytes > 0 && wanted.mem_bytes.value_or(0) > machine.mem_bytes)
    lacks.push_back(
        absl::StrCat(MemoryText(*wanted.mem_bytes), " of memory, this machine has ", MemoryText(machine.mem_bytes)));
  if (wanted.gpus.value_or(0) > machine.gpus)
    lacks.push_back(absl::StrCat(*wanted.gpus, *wanted.gpus == 1 ? " gpu" : " gpus", ", this machine has ",
                                 machine.gpus, "; --no-gpus runs without"));
  return absl::StrJoin(lacks, "; and for ");
}

}  // namespace muster
