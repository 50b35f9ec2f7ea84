#include "muster/launch/engines/kubernetes/pod_program.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/launch/engines/kubernetes/pod_job.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

std::string WholeSeconds(absl::Duration time) {
  return absl::StrCat(absl::ToInt64Seconds(absl::Ceil(time, absl::Seconds(1))));
}

// What the pod's processes need for their own ends.
constexpr absl::Duration kLastSecondsOfPod = absl::Seconds(3);

// An image's user may have no folder that it can write to.
constexpr char kOwnFolder[] = "[ -w \"${HOME:-/nowhere}\" ] || export HOME=/muster\n";

// A shell as the container's first process gets the signals, and waits. `wait` also returns when a signal has come,
// with a code above 128: another one tells the program's own, or 127 where that was told before.
constexpr char kAttend[] = R"sh(child= asked= since= wish=
trap 'asked=1; [ -z "$child" ] || kill -TERM "$child"' TERM INT
trap '' USR1
attend() {
  "$@" & child=$!
  [ -z "$asked$wish" ] || kill -TERM "$child"
  wait "$child"; code=$?
  while [ -z "$asked" ] || since=${since:-$(date +%s)}; [ "$code" -gt 128 ]; do
    lives=; ! kill -0 "$child" 2>/dev/null || lives=1
    wait "$child" 2>/dev/null; last=$?
    [ "$last" != 127 ] || break
    code=$last
    [ -n "$lives" ] || break
  done
  child=
  return "$code"
}
)sh";

// SIGUSR1 reaches the supervisor alone: whoever asks for the run's end still wants what is to be fetched. SIGTERM ends
// the wait for that, after which a shorter one follows.
constexpr char kSupervise[] = R"sh((umask 077 && cat /etc/muster/rendezvous >/muster/rendezvous) || exit 1
attend MUSTER home await ID --patience AWAIT || exit "$code"
rm -f /muster/said
mkfifo /muster/said && { tee -a OUTPUT </muster/said & exec >/muster/said 2>&1; }
trap 'wish=1; [ -z "$child" ] || kill -TERM "$child"' USR1
for life in 1 2 3 4; do
  wish=
  attend MUSTER supervise ID --in_job kubernetes
  [ ! -e OVER ] || break
done
trap '' USR1
wish=
end=$code asked=1
while [ -n "$asked" ]; do
  asked= keep=KEEP
  [ -z "$since" ] || keep=$((since + GRACE - $(date +%s)))
  [ "$keep" -ge 0 ] || break
  attend MUSTER home linger ID --keep "$keep"
done
exit "$end"
)sh";

constexpr char kServe[] = R"sh((umask 077 && cat /etc/muster/rendezvous >/muster/rendezvous) || exit 1
exec MUSTER agent --serve RUN --host_variable VARIABLE --rendezvous /muster/rendezvous --grace GRACE --first FIRST --ending ENDING --passes_signals
)sh";

}  // namespace

std::string SupervisorProgram(const SupervisorPodProgram& program) {
  return absl::StrCat(kOwnFolder, "echo $$ >", kPidFileOfPod, "\necho ", ShellWord(program.muster),
                      " >/muster/muster\n", kAttend,
                      absl::StrReplaceAll(kSupervise, {{"MUSTER", ShellWord(program.muster)},
                                                       {"ID", ShellWord(program.experiment)},
                                                       {"OVER", ShellWord(program.over_file)},
                                                       {"OUTPUT", ShellWord(program.output_file)},
                                                       {"AWAIT", WholeSeconds(program.await)},
                                                       {"KEEP", WholeSeconds(program.keep)},
                                                       {"GRACE", WholeSeconds(program.grace - kLastSecondsOfPod)}}));
}

std::string AgentProgramOfPod(const AgentPodProgram& program) {
  return absl::StrCat(kOwnFolder, absl::StrReplaceAll(kServe, {{"MUSTER", ShellWord(program.muster)},
                                                               {"RUN", ShellWord(program.run)},
                                                               {"VARIABLE", kHostVariableOfPod},
                                                               {"GRACE", WholeSeconds(program.grace)},
                                                               {"FIRST", WholeSeconds(program.first)},
                                                               {"ENDING", WholeSeconds(program.ending)}}));
}

std::string NoteProgram() { return absl::StrCat(": >", kAskedFileOfPod); }

std::string AskProgram() { return absl::StrCat(NoteProgram(), "; kill -USR1 \"$(cat ", kPidFileOfPod, ")\""); }

std::string InPodHome(const std::string& path, const std::string& home) {
  return absl::StartsWith(path, home) ? absl::StrCat(kPodHome, path.substr(home.size())) : path;
}

}  // namespace muster
