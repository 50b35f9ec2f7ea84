// The user's own kubectl, with the context and namespace of an experiment's job. Not thread-safe; calls block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/hosts/kubernetes_setting.h"
#include "muster/launch/system/program_output.h"

namespace muster {

// Where a job is, for every command to ask there, whatever kubectl's current context is then.
struct KubernetesPlace {
  std::string kubectl = kUsualKubectl;
  std::string kubeconfig;  // KUBECONFIG; empty: kubectl's usual file
  std::string context;     // empty: kubectl has no current one, as in a pod
  std::string name_space;  // empty: that of the context

  // One line of JSON.
  std::string text() const;
  // Returns a place without anything for a text that isn't one.
  static KubernetesPlace Parse(const std::string& text);

  bool operator==(const KubernetesPlace&) const = default;
};

// What kubectl is told, and how long it may take.
struct KubectlCall {
  std::vector<std::string> words;  // behind the context and namespace
  std::string input = "";          // its stdin
  absl::Duration patience;
};

class Kubectl {
 public:
  // `environment`: of this process, "NAME=VALUE".
  Kubectl(KubernetesPlace place, std::vector<std::string> environment);

  const KubernetesPlace& place() const { return place_; }
  // Makes the place's files absolute, as other commands have other working folders, and fills in the context and
  // namespace that kubectl's configuration names; without a current context, as in a pod, both stay empty. Doesn't ask
  // the API. An error: they can't be found out, and a job would be where nobody finds it again. NotFound: there is no
  // kubectl. Unavailable: it doesn't answer within `patience`. InvalidArgument: its words.
  [[nodiscard]] absl::Status Resolve(absl::Duration patience = kConfigPatience);
  // Unavailable: the place has no context, and kubectl has a current one by now, or doesn't say: it would ask another
  // cluster than the one that has the job. OK where the place has a context.
  [[nodiscard]] absl::Status CheckSamePlace() const;
  // Runs kubectl with these words behind the context and namespace, and `input` on its stdin. Returns what it has
  // written. NotFound: there is no kubectl. Unavailable: the API doesn't answer. PermissionDenied: it may not be asked
  // that. ResourceExhausted: a quota is full. InvalidArgument: another refusal. Each has kubectl's own words, and says
  // what to do.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& words, const std::string& input = "",
                                  absl::Duration patience = kPatience) const;
  absl::StatusOr<std::string> Run(const KubectlCall& call) const { return Run(call.words, call.input, call.patience); }
  // The same in two steps: what is asked runs while others are asked. An answer is taken once.
  using Asked = absl::StatusOr<AwaitedProgram>;
  Asked Ask(const std::vector<std::string>& words, const std::string& input = "",
            absl::Duration patience = kPatience) const;
  Asked Ask(const KubectlCall& call) const { return Ask(call.words, call.input, call.patience); }
  absl::StatusOr<std::string> AnswerTo(Asked& asked) const;
  // Returns the line by which a user's shell runs the same, in the same place.
  std::string CommandLine(const std::vector<std::string>& words) const;

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(20);
  static constexpr absl::Duration kConfigPatience = absl::Seconds(10);

  // Returns what `kubectl config` says to these words. Errors are those of Resolve.
  absl::StatusOr<std::string> AskConfig(std::vector<std::string> words, absl::Duration patience) const;
  // Returns "" if it has none.
  absl::StatusOr<std::string> CurrentContext(absl::Duration patience) const;
  absl::Status NoContext(const std::string& said) const;
  absl::Status NoKubectl(const absl::Status& why) const;
  absl::Status ErrorOf(const std::string& said) const;
  std::string InPlace() const;
  // Returns the program, with the context and namespace, and these words.
  std::vector<std::string> Command(const std::vector<std::string>& words) const;

  KubernetesPlace place_;
  const std::vector<std::string> environment_;
};

// Returns what kubectl has said on stderr as one line, without its own log and warnings.
std::string WordsOfKubectl(std::string_view err);

}  // namespace muster
