#include "muster/launch/agent_server/agent_environment.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/net/free_ports.h"

namespace muster {
namespace {

constexpr char kSshConnection[] = "SSH_CONNECTION=";
constexpr absl::string_view kPath = "PATH=";
// Where the host's user keeps experiments, which is the same for all that runs there.
constexpr absl::string_view kMusterHome = "MUSTER_HOME=";

}  // namespace

std::vector<std::string> TaskEnvironment(const std::vector<std::string>& own, const std::string& program_folder) {
  std::vector<std::string> environment;
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& variable : own) {
    if (absl::StartsWith(variable, kPath)) {
      path = variable.substr(kPath.size());
    } else if (absl::StartsWith(variable, kMusterHome) ||
               (!absl::StartsWith(variable, "SSH_") && !absl::StartsWith(variable, "MUSTER_"))) {
      environment.push_back(variable);
    }
  }
  environment.push_back(absl::StrCat(kPath, program_folder, ":", path));
  return environment;
}

// "CLIENT PORT SERVER PORT", see sshd(8).
std::string ReachedAddress(const std::vector<std::string>& own) {
  for (const std::string& variable : own) {
    if (!absl::StartsWith(variable, kSshConnection)) continue;
    const std::vector<std::string> words = absl::StrSplit(variable.substr(sizeof kSshConnection - 1), ' ');
    if (words.size() == 4 && !words[2].empty()) return words[2];
  }
  return kLoopbackAddress;
}

}  // namespace muster
