#include "muster/launch/hosts/slurm_setting.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr char kMostRequeues[] = "max_requeues";

// The keys of `slurm` of our own, and sbatch's long options but kNotForUsers: all that it has had from Slurm 20.02 to
// 26.05, as the table in Slurm's src/common/slurm_opt.c has them. sbatch(1) leaves some out, and those of plugins
// (SPANK) are in neither.
constexpr const char* kKnown[] = {
    "extra", kMostRequeues,
    // sbatch's
    "account", "acctg-freq", "batch", "bb", "bbf", "begin", "chdir", "cluster-constraint", "comment",
    "consolidate-segments", "constraint", "container", "container-id", "container-type", "context", "contiguous",
    "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task", "deadline", "delay-boot",
    "dependency", "distribution", "error", "exclude", "exclusive", "export", "extra-node-info", "gid", "gpu-bind",
    "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "hint", "hold",
    "ignore-pbs", "job-name", "kill-on-invalid-dep", "licenses", "mail-type", "mail-user", "mcs-label", "mem",
    "mem-bind", "mem-per-cpu", "mem-per-gpu", "mem-update", "mincpus", "network", "nice", "no-kill", "no-requeue",
    "nodefile", "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "ntasks-per-tres", "oom-kill-step", "open-mode", "output", "overcommit", "oversubscribe",
    "partition", "power", "prefer", "priority", "profile", "propagate", "qos", "quiet", "reboot", "requeue",
    "reservation", "resources", "resv-ports", "segment", "signal", "sockets-per-node", "spread-job", "spread-segments",
    "stepmgr", "switches", "tasks-per-node", "thread-spec", "threads-per-core", "time", "time-min", "tmp", "tres-bind",
    "tres-per-task", "uid", "use-min-nodes", "verbose", "wait-all-nodes", "wckey"};

// Each would give the experiment several jobs or another cluster, no script, or an answer of another form.
constexpr absl::string_view kNotForUsers[] = {"array",   "wrap",     "parsable",    "test-only",    "wait",
                                              "help",    "usage",    "version",     "autocomplete", "input",
                                              "cluster", "clusters", "export-file", "get-user-env", "external"};

// As further words they would undo what muster says of them.
constexpr absl::string_view kOnlyAsKeys[] = {"dependency", "signal"};

bool IsNotForUsers(const std::string& name) {
  return std::find(std::begin(kNotForUsers), std::end(kNotForUsers), name) != std::end(kNotForUsers);
}

bool HasControlCharacter(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

// Whether --signal has B before its colon, beside which R may stand: "B:USR1@90".
bool IsForTheScript(const std::string& signal) {
  const size_t colon = signal.find(':');
  return colon != std::string::npos && signal.substr(0, colon).find('B') != std::string::npos;
}

// Returns the known name for which this one is a typing mistake; "" for a known one, and for one that is near to none:
// sbatch of another version may have it.
std::string MeantBy(const std::string& name) {
  static const auto* const known = new std::vector<std::string>(std::begin(kKnown), std::end(kKnown));
  const std::string nearest = NearestName(name, *known);
  return nearest == name ? "" : nearest;
}

absl::Status CheckSbatchOption(const std::string& name, const std::optional<std::string>& value) {
  const bool is_name = !name.empty() && absl::ascii_islower(static_cast<unsigned char>(name.front())) &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                                absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
                       });
  if (!is_name)
    return absl::InvalidArgumentError(absl::StrCat("'", OneLine(name), "' isn't an option of sbatch; accepted is its ",
                                                   "long name without dashes, as partition, time, mem-per-cpu"));
  if (IsNotForUsers(name))
    return absl::InvalidArgumentError(absl::StrCat("sbatch's option ", name, " isn't for experiments"));
  if (value.has_value() && HasControlCharacter(*value))
    return absl::InvalidArgumentError(absl::StrCat(name, ": a text of one line is accepted"));
  if (name == "signal" && value.has_value() && !IsForTheScript(*value))
    return absl::InvalidArgumentError(absl::StrCat("signal is '", OneLine(*value),
                                                   "', which the tasks' own programs would get, and most end by it; ",
                                                   "accepted: B:NAME@SECONDS, for muster's script, or null"));
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeSlurmSetting(SlurmSetting& slurm, const std::string& name, const std::optional<std::string>& value) {
  if (name != kMostRequeues) {
    if (const std::string meant = MeantBy(name); !meant.empty() && !IsNotForUsers(name))
      return absl::InvalidArgumentError(absl::StrCat("'", OneLine(name), "' is unknown (nearest: ", meant,
                                                     "); what is meant as it is can be among the words of extra"));
    RETURN_IF_ERROR(CheckSbatchOption(name, value));
    slurm.options[name] = value;
    return absl::OkStatus();
  }
  const std::string number = value.value_or("0");
  if (absl::SimpleAtoi(number, &slurm.max_requeues) && slurm.max_requeues >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kMostRequeues, " is '", OneLine(number), "'; accepted: a whole number from 0"));
}

absl::Status TakeSlurmExtra(SlurmSetting& slurm, const std::string& word) {
  if (!absl::StartsWith(word, "--"))
    return absl::InvalidArgumentError(absl::StrCat(
        "'", OneLine(word), "': accepted is an option of sbatch by its long name: --NAME or --NAME=VALUE"));
  const std::string option = word.substr(2);
  const size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  if (std::find(std::begin(kOnlyAsKeys), std::end(kOnlyAsKeys), name) != std::end(kOnlyAsKeys))
    return absl::InvalidArgumentError(absl::StrCat("'", OneLine(word), "': muster has its own ", name,
                                                   ", beside or instead of which the key slurm.", name, " puts yours"));
  RETURN_IF_ERROR(CheckSbatchOption(name, equals == std::string::npos ? "" : option.substr(equals + 1)));
  slurm.extra.push_back(word);
  return absl::OkStatus();
}

}  // namespace muster
