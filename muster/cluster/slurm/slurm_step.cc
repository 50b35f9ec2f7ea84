#include "muster/cluster/slurm/slurm_step.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/cluster/slurm/node_list.h"

namespace muster {
namespace {

// From here on Slurm's numbers stand for shells and containers: 4294967291 is the batch script's.
constexpr uint32_t kFirstStepOfAShell = 0xfffffff0;
constexpr char kSlurmWayOut[] = "; MUSTER_RESOLVE=none trains alone";

absl::Status BadSlurmVariable(const std::string& name, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", why, kSlurmWayOut));
}

// Digits only, unlike SimpleAtoi.
std::optional<uint32_t> SlurmDigits(std::string_view text) {
  uint32_t number = 0;
  for (char c : text)
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number)) return std::nullopt;
  return number;
}

absl::StatusOr<uint32_t> SlurmNumber(const std::string& name, const std::optional<std::string>& value) {
  if (value.value_or("").empty()) return BadSlurmVariable(name, "not set in a step of several tasks");
  const auto number = SlurmDigits(*value);
  if (!number) return BadSlurmVariable(name, Quoted(*value) + " is not a number; accepted: what srun sets");
  return *number;
}

bool IsSet(const std::optional<std::string>& value) { return !value.value_or("").empty(); }

// Numbers as they are, anything else in quotes.
std::string ShownNumber(const std::string& text) { return SlurmDigits(text) ? text : Quoted(text); }

// Returns why the process is no task of the step that its variables name, as far as can be seen; else "".
std::string WhyInherited(const SlurmVariables& variables, const std::string& step) {
  const std::string& stepd = variables.process.stepd;
  const size_t dot = stepd.find('.');
  if (dot != std::string::npos && SlurmDigits(stepd.substr(0, dot))) {
    // Each part of a heterogeneous job has a job id of its own, so there only the kind of step counts.
    const bool parts = IsSet(variables.het_size);
    const bool same = parts ? SlurmDigits(stepd.substr(dot + 1)).has_value() : stepd == step;
    if (!same)
      return absl::StrCat("the variables of Slurm's step ", step, " are inherited: this process belongs to ", stepd);
  }
  return "";
}

// Returns why the process is alone on the terminal of a step with --pty, or "" if it isn't there. An error if the
// step's tasks are the program itself, as in `srun -n 4 --pty ./program`: the first one has the terminal, and nobody
// sees what the others say. So all of them refuse, rather than that one trains alone while the others wait for it. A
// step below `srun --pty` inherits SLURM_PTY_PORT, but its tasks have no terminal, and what they say goes somewhere.
absl::StatusOr<std::string> WhyAloneOnTerminal(const SlurmVariables& variables, const std::string& step) {
  const StepProcess& process = variables.process;
  if (!IsSet(variables.pty_port)) return "";
  const bool has_terminal = process.has_terminal.value_or(true);
  if (has_terminal ? process.is_task : process.is_mute)
    return BadSlurmVariable("SLURM_PTY_PORT",
                            absl::StrCat("Slurm's step ", step,
                                         " has several tasks, but with --pty it has one terminal, that of task 0; use "
                                         "srun without --pty to train together, with --ntasks=1 to train alone"));
  return has_terminal ? absl::StrCat("Slurm's step ", step, " has a terminal (srun --pty)") : "";
}

// Returns why the process is not one of several tasks; "" if it is, or if this isn't Slurm. An error: see above.
absl::StatusOr<std::string> WhyAlone(const SlurmVariables& variables, bool believed) {
  const std::string job = variables.job_id.value_or("");
  if (job.empty() && !IsSet(variables.step_id)) return "";
  if (!IsSet(variables.step_id))
    return absl::StrCat("srun didn't start this process in Slurm's job ", ShownNumber(job));
  const std::string step = absl::StrCat(ShownNumber(job), ".", ShownNumber(*variables.step_id));
  const auto number = SlurmDigits(*variables.step_id);
  if (!number || *number >= kFirstStepOfAShell) return absl::StrCat("Slurm's step ", step, " is a shell, not tasks");
  if (!IsSet(variables.step_num_tasks))
    return absl::StrCat("SLURM_STEP_NUM_TASKS of Slurm's step ", step, " isn't set");
  if (*variables.step_num_tasks == "1") return absl::StrCat("Slurm's step ", step, " has one task");
  if (believed) return "";
  const std::string inherited = WhyInherited(variables, step);
  return inherited.empty() ? WhyAloneOnTerminal(variables, step) : inherited;
}

// Goes round the nodes, and gives each `at_once` tasks at a time until it has all of its own.
std::vector<SlurmPlace> GoRound(const std::vector<std::string>& nodes, const std::vector<int>& counts, int at_once,
                                int tasks) {
  std::vector<SlurmPlace> places;
  places.reserve(static_cast<size_t>(tasks));
  std::vector<int> given(nodes.size(), 0);
  while (places.size() < static_cast<size_t>(tasks)) {
    for (size_t node = 0; node < nodes.size(); ++node) {
      const int now = std::min(at_once, counts[node] - given[node]);
      for (int i = 0; i < now; ++i) places.push_back({nodes[node], given[node]++});
    }
  }
  return places;
}

// A task that is elsewhere than this process computes would tell the others a wrong address: better no training.
absl::Status CheckOwnPlace(const SlurmVariables& variables, const SlurmStep& step,
                           const std::vector<std::string>& nodes) {
  const SlurmPlace& own = step.places[static_cast<size_t>(step.proc_id)];
  const auto wrong = [&](const std::string& name, const std::string& says, const std::string& computed) {
    return BadSlurmVariable(
        name, absl::StrCat(says, ", but by SLURM_STEP_TASKS_PER_NODE and SLURM_DISTRIBUTION task ", step.proc_id,
                           " has ", computed, ": let srun deal out tasks by --distribution=block"));
  };
  if (IsSet(variables.node_id)) {
    ASSIGN_OR_RETURN(const uint32_t node, SlurmNumber("SLURM_NODEID", variables.node_id));
    if (node >= nodes.size() || nodes[node] != own.node)
      return wrong("SLURM_NODEID", absl::StrCat(node), absl::StrCat("node ", own.node));
  }
  if (IsSet(variables.local_id)) {
    ASSIGN_OR_RETURN(const uint32_t local, SlurmNumber("SLURM_LOCALID", variables.local_id));
    if (local != static_cast<uint32_t>(own.local))
      return wrong("SLURM_LOCALID", absl::StrCat(local), absl::StrCat("number ", own.local, " on its node"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SlurmStep> ReadStep(const SlurmVariables& variables) {
  SlurmStep step;
  ASSIGN_OR_RETURN(step.job_id, SlurmNumber("SLURM_JOB_ID", variables.job_id));
  ASSIGN_OR_RETURN(step.step_id, SlurmNumber("SLURM_STEP_ID", variables.step_id));
  ASSIGN_OR_RETURN(const uint32_t tasks, SlurmNumber("SLURM_STEP_NUM_TASKS", variables.step_num_tasks));
  if (tasks < 1 || tasks > kMostTasksOfAStep)
    return BadSlurmVariable("SLURM_STEP_NUM_TASKS", absl::StrCat(tasks, "; accepted: 1 to ", kMostTasksOfAStep));
  ASSIGN_OR_RETURN(const uint32_t proc_id, SlurmNumber("SLURM_PROCID", variables.proc_id));
  if (proc_id >= tasks)
    return BadSlurmVariable("SLURM_PROCID",
                            absl::StrCat(proc_id, " in a step of ", tasks, " tasks (SLURM_STEP_NUM_TASKS)"));
  step.proc_id = static_cast<int>(proc_id);
  for (const auto& [name, value] : {std::pair{"SLURM_STEP_NODELIST", &variables.step_nodelist},
                                    std::pair{"SLURM_STEP_TASKS_PER_NODE", &variables.step_counts}})
    if (!IsSet(*value)) return BadSlurmVariable(name, "not set in a step of several tasks");
  const auto nodes = ExpandNodeList(*variables.step_nodelist);
  if (!nodes.ok()) return BadSlurmVariable("SLURM_STEP_NODELIST", std::string(nodes.status().message()));
  const auto counts = ExpandCounts(*variables.step_counts);
  if (!counts.ok()) return BadSlurmVariable("SLURM_STEP_TASKS_PER_NODE", std::string(counts.status().message()));
  if (counts->size() != nodes->size())
    return BadSlurmVariable("SLURM_STEP_TASKS_PER_NODE",
                            absl::StrCat(Quoted(*variables.step_counts), " counts ", counts->size(),
                                         " nodes, and SLURM_STEP_NODELIST ", nodes->size()));
  const int64_t sum = std::accumulate(counts->begin(), counts->end(), int64_t{0});
  if (sum != static_cast<int64_t>(tasks))
    return BadSlurmVariable("SLURM_STEP_TASKS_PER_NODE", absl::StrCat(Quoted(*variables.step_counts), " makes ", sum,
                                                                      " tasks, and SLURM_STEP_NUM_TASKS ", tasks));
  // The parts of a heterogeneous job are dealt out one after the other, each by a distribution of its own ("cyclic"
  // where a node has one task), which is block as a whole unless the user wants something else. CheckOwnPlace finds
  // that out.
  const std::string distribution = IsSet(variables.het_size) ? "block" : variables.distribution.value_or("");
  ASSIGN_OR_RETURN(step.places, DealOutTasks(*nodes, *counts, distribution, variables.plane_size.value_or("")));
  RETURN_IF_ERROR(CheckOwnPlace(variables, step, *nodes));
  return step;
}

}  // namespace

std::string SlurmStep::Name() const { return absl::StrCat(job_id, ".", step_id); }

absl::StatusOr<std::vector<SlurmPlace>> DealOutTasks(const std::vector<std::string>& nodes,
                                                     const std::vector<int>& counts, std::string_view distribution,
                                                     std::string_view plane_size) {
  const int tasks = std::accumulate(counts.begin(), counts.end(), 0);
  const int most = *std::max_element(counts.begin(), counts.end());
  // "cyclic:block,NoPack": only what comes first is about nodes.
  const std::string all = absl::AsciiStrToLower(absl::string_view(distribution.data(), distribution.size()));
  const std::string kind = all.substr(0, all.find_first_of(":,="));
  if (kind.empty() || kind == "block" || kind == "*") return GoRound(nodes, counts, most, tasks);
  if (kind == "cyclic") return GoRound(nodes, counts, 1, tasks);
  if (kind == "plane") {
    const std::string size = all.size() > kind.size() ? all.substr(kind.size() + 1) : std::string(plane_size);
    const auto at_once = SlurmDigits(size);
    if (at_once && *at_once > 0)
      return GoRound(nodes, counts, static_cast<int>(std::min<uint32_t>(*at_once, kMostTasksOfAStep)), tasks);
  }
  return BadSlurmVariable("SLURM_DISTRIBUTION",
                          absl::StrCat(Quoted(distribution),
                                       " doesn't tell which node has which task; accepted: srun --distribution=block, "
                                       "cyclic or plane=N"));
}

absl::StatusOr<SlurmAnswer> ReadSlurm(const SlurmVariables& variables, bool believed) {
  SlurmAnswer answer;
  if (!IsSet(variables.job_id) && !IsSet(variables.step_id)) return answer;
  ASSIGN_OR_RETURN(answer.alone, WhyAlone(variables, believed));
  if (answer.alone.empty()) {
    ASSIGN_OR_RETURN(answer.step, ReadStep(variables));
  }
  return answer;
}

std::string OneOfSeveral(const SlurmVariables& variables) {
  const absl::StatusOr<SlurmAnswer> answer = ReadSlurm(variables, /*believed=*/false);
  // Only a step of several tasks can be wrong.
  if (answer.ok() && !answer->step.has_value()) return "";
  return absl::StrCat("task ", ShownNumber(variables.proc_id.value_or("")), " of ",
                      ShownNumber(variables.step_num_tasks.value_or("")), " of Slurm's step ",
                      ShownNumber(variables.job_id.value_or("")), ".", ShownNumber(variables.step_id.value_or("")));
}

}  // namespace muster
