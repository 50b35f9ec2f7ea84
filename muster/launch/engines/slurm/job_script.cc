#include "muster/launch/engines/slurm/job_script.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/slurm/job_options.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

// A signal that others send, too, is no notice: by SIGTERM, for example, somebody cancels the job.
constexpr absl::string_view kNoNotice[] = {"TERM", "15", "INT", "2"};

// A signal ends `wait`, but not the supervisor; the last wait has the supervisor's own exit status.
constexpr char kScriptBody[] = R"sh(
if [ ! -x "$muster" ]; then
  why="${SLURMD_NODENAME:-$HOSTNAME} has no $muster: put muster into a folder that all nodes see"
  echo "$why" >"$over"
  echo "muster: $why" >&2
  exit 2
fi
tell() { kill -s "$1" "$supervisor" 2>/dev/null; }
trap 'ending=1; tell TERM' TERM
trap 'ending=1; tell INT' INT
trap '' HUP
NOTICEending=
rm -f "$notice"
for life in 1 2 3 4; do
  rm -f "$over"
  "$muster" supervise "$experiment" --in_job slurm &
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

std::string JobScript(const JobRequest& request) {
  const SbatchOptions options = OptionsOfJob(request);
  const std::vector<std::string> extra = request.setting.slurm.value_or(SlurmSetting()).extra;
  std::string text = absl::StrCat("#!/bin/bash\n# Experiment ", request.experiment, " of project ",
                                  OneLine(request.project), ", as muster train has given it to sbatch.\n");
  // An option without a value that needs one would take what stands behind it: sbatch reads the lines as one command.
  for (const bool bare : {false, true}) {
    for (const auto& [name, value] : options)
      if (value.value_or("").empty() == bare) absl::StrAppend(&text, OptionLine(name, value.value_or("")));
    for (const std::string& word : extra)
      if ((word.find('=') == std::string::npos) == bare) absl::StrAppend(&text, "#SBATCH ", SbatchWord(word), "\n");
  }
  absl::StrAppend(&text, "\n", Assignment("muster", request.muster), Assignment("experiment", request.experiment),
                  Assignment("over", request.over_file), Assignment("notice", request.notice_file), "export ",
                  Assignment("MUSTER_HOME", request.home), absl::StrFormat("umask %04o\n", request.users_umask));
  std::string signal = NoticeSignal(options);
  if (signal.empty()) signal = "USR1";  // which a site may send by itself
  const bool is_notice = std::find(std::begin(kNoNotice), std::end(kNoNotice), signal) == std::end(kNoNotice);
  const std::string trap = absl::StrCat("trap ': >\"$notice\"; ending=1; tell TERM' ", signal, "\n");
  absl::StrAppend(&text, absl::StrReplaceAll(kScriptBody, {{"NOTICE", is_notice ? trap : ""}}));
  return text;
}

}  // namespace muster
