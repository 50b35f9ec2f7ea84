#include "muster/launch/engines/slurm/job_script.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

// A signal ends `wait`, but not the supervisor; the last wait has the supervisor's own exit status.
constexpr char kScriptBody[] = R"sh(
tell() { kill -s "$1" "$supervisor" 2>/dev/null; }
trap 'ending=1; tell TERM' TERM
trap 'ending=1; tell INT' INT
trap ': >"$notice"; ending=1; tell TERM' NOTICE
trap '' HUP
ending=
rm -f "$notice"
for life in 1 2 3 4; do
  rm -f "$over"
  "$muster" supervise "$experiment" --in_job &
  supervisor=$!
  # A signal may have come before there was anybody to tell.
  [ -z "$ending" ] || tell TERM
  while wait "$supervisor"; kill -0 "$supervisor" 2>/dev/null; do :; done
  wait "$supervisor"
  code=$?
  # It makes this file when it has come to an end by itself, whatever the exit status is.
  if [ -e "$over" ] || [ "$code" -le 128 ] || [ "$ending" ]; then break; fi
  echo "muster: the supervisor of experiment $experiment was killed (signal $((code - 128)))" >&2
done
exit "$code"
)sh";

// sbatch reads quotes and backslashes in these lines.
std::string SbatchWord(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("-_=./:,@%+[]*").find(c) != absl::string_view::npos;
  });
  return plain ? text : absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string OptionLine(const std::string& name, const std::string& value) {
  return absl::StrCat("#SBATCH ", SbatchWord(absl::StrCat("--", name, value.empty() ? "" : "=", value)), "\n");
}

std::string Assignment(absl::string_view name, const std::string& value) {
  return absl::StrCat(name, "=", ShellWord(value), "\n");
}

}  // namespace

SbatchOptions MergeOptions(SbatchOptions generated, const SlurmSetting& setting) {
  for (const auto& [name, value] : setting.options) generated[name] = value;
  std::erase_if(generated, [](const auto& option) { return !option.second.has_value(); });
  return generated;
}

std::string NoticeSignal(const SbatchOptions& options) {
  const auto option = options.find("signal");
  // "B:USR1@90", where B is the script; "R" may stand beside it.
  if (option == options.end() || !option->second.has_value()) return "";
  const size_t colon = option->second->find(':');
  if (colon == std::string::npos || option->second->substr(0, colon).find('B') == std::string::npos) return "";
  std::string name = option->second->substr(colon + 1);
  name.resize(std::min(name.size(), name.find('@')));
  if (absl::StartsWith(name, "SIG")) name.erase(0, 3);
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c));
  });
  return is_name ? name : "";
}

std::string JobScript(const JobScriptOrder& order) {
  std::string text = absl::StrCat("#!/bin/bash\n# Experiment ", order.experiment, " of project ",
                                  OneLine(order.project), ", as muster train has given it to sbatch.\n");
  // An option without a value that needs one would take what stands behind it: sbatch reads the lines as one command.
  for (const bool bare : {false, true}) {
    for (const auto& [name, value] : order.options)
      if (value.value_or("").empty() == bare) absl::StrAppend(&text, OptionLine(name, value.value_or("")));
    for (const std::string& word : order.extra)
      if ((word.find('=') == std::string::npos) == bare) absl::StrAppend(&text, "#SBATCH ", SbatchWord(word), "\n");
  }
  absl::StrAppend(&text, "\n", Assignment("muster", order.muster), Assignment("experiment", order.experiment),
                  Assignment("over", order.over_file), Assignment("notice", order.notice_file), "export ",
                  Assignment("MUSTER_HOME", order.home), absl::StrFormat("umask %04o\n", order.users_umask));
  const std::string signal = NoticeSignal(order.options);
  absl::StrAppend(&text, absl::StrReplaceAll(kScriptBody, {{"NOTICE", signal.empty() ? "USR1" : signal}}));
  return text;
}

// As sbatch(1) describes --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
// days-hours:minutes:seconds.
std::optional<absl::Duration> ParseTimeLimit(const std::string& text) {
  const std::vector<std::string> days_and_rest = absl::StrSplit(text, '-');
  if (days_and_rest.size() > 2) return std::nullopt;
  const bool has_days = days_and_rest.size() == 2;
  std::vector<int64_t> numbers;
  for (const absl::string_view part : absl::StrSplit(days_and_rest.back(), ':')) {
    int64_t number = 0;
    if (!std::all_of(part.begin(), part.end(), absl::ascii_isdigit) || !absl::SimpleAtoi(part, &number))
      return std::nullopt;
    numbers.push_back(number);
  }
  int64_t days = 0;
  if (numbers.size() > 3 || (has_days && !absl::SimpleAtoi(days_and_rest.front(), &days))) return std::nullopt;
  const absl::Duration whole_days = absl::Hours(24) * days;
  numbers.resize(3, -1);
  const auto at = [&numbers](size_t i) { return std::max<int64_t>(numbers[i], 0); };
  if (has_days) return whole_days + absl::Hours(at(0)) + absl::Minutes(at(1)) + absl::Seconds(at(2));
  if (numbers[2] >= 0) return absl::Hours(at(0)) + absl::Minutes(at(1)) + absl::Seconds(at(2));
  return absl::Minutes(at(0)) + absl::Seconds(at(1));
}

}  // namespace muster
