#include "muster/launch/engines/ssh/ssh_command.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/last_line.h"

namespace muster {
namespace {

// Also for a command whose process here has been killed: the connection to a host that no longer answers ends by
// itself.
constexpr int kAliveSeconds = 15;
constexpr int kAliveProbes = 3;

struct Sign {
  absl::string_view text;  // in lower case, in what ssh writes
  SshFailure failure;
};

// The first that is found decides, so what is more special comes first.
constexpr std::array<Sign, 16> kSigns = {{
    {"remote host identification has changed", SshFailure::kChangedKey},
    {"host key verification failed", SshFailure::kUnknownKey},
    {"permission denied", SshFailure::kDenied},
    {"too many authentication failures", SshFailure::kDenied},
    {"no supported authentication methods", SshFailure::kDenied},
    {"could not resolve hostname", SshFailure::kUnknownName},
    {"connection refused", SshFailure::kUnreachable},
    {"no route to host", SshFailure::kUnreachable},
    {"network is unreachable", SshFailure::kUnreachable},
    {"connection timed out", SshFailure::kUnreachable},
    {"operation timed out", SshFailure::kUnreachable},
    {"kex_exchange_identification", SshFailure::kDropped},
    {"exceeded maxstartups", SshFailure::kDropped},
    {"broken pipe", SshFailure::kConnection},
    {"connection reset", SshFailure::kConnection},
    {"connection to ", SshFailure::kConnection},
}};

std::string WhatToDo(SshFailure failure, const std::string& host) {
  switch (failure) {
    case SshFailure::kDropped:
      return "closes connections before the login, several times over; its sshd takes too few at once (MaxStartups)";
    case SshFailure::kUnknownName:
      return "has a name that can't be resolved; correct it, or add the host to ~/.ssh/config";
    case SshFailure::kUnreachable:
      return "can't be reached; is it on, and does its sshd run?";
    case SshFailure::kUnknownKey:
      return absl::StrCat("has a key that isn't known yet; log in once by hand (ssh ", host, ") and compare it");
    case SshFailure::kChangedKey:
      return absl::StrCat("has another key than before; if that is right, ssh-keygen -R ", host);
    case SshFailure::kDenied:
      return absl::StrCat("denies the login; is your key in its authorized_keys (ssh-copy-id ", host,
                          ") and, if it has a passphrase, in your ssh-agent?");
    case SshFailure::kConnection:
      return "was connected, and the connection broke";
    case SshFailure::kNone:
    case SshFailure::kOther:
      break;
  }
  return "can't be used by ssh";
}

}  // namespace

std::vector<std::string> SshArguments(const SshSettings& settings, const std::string& host,
                                      const std::string& command) {
  std::vector<std::string> words = {settings.program};
  if (!settings.config.empty()) words.insert(words.end(), {"-F", settings.config});
  const auto set = [&words](const std::string& option) { words.insert(words.end(), {"-o", option}); };
  set("BatchMode=yes");  // never asks
  set(absl::StrCat("ConnectTimeout=", absl::ToInt64Seconds(settings.connect_timeout)));
  set(absl::StrCat("ServerAliveInterval=", kAliveSeconds));
  set(absl::StrCat("ServerAliveCountMax=", kAliveProbes));
  if (settings.terminal) set("LogLevel=ERROR");  // without a line that says that the connection is closed
  words.insert(words.end(), {settings.terminal ? "-t" : "-T", "--", host, command});
  return words;
}

SshFailure WhySshFailed(const ExitStatus& status, std::string_view errors) {
  if (status.signal == 0 && status.code != kFailureOfSsh) return SshFailure::kNone;
  const std::string lower = absl::AsciiStrToLower(AbslView(errors));
  // A time-out while the other side says nothing is a full sshd, not a host that can't be reached.
  if (absl::StrContains(lower, "during banner exchange")) return SshFailure::kDropped;
  for (const Sign& sign : kSigns)
    if (absl::StrContains(lower, sign.text)) return sign.failure;
  return SshFailure::kOther;
}

std::string ExplainSshFailure(SshFailure failure, const std::string& host, std::string_view errors) {
  const std::string words = LastLineOf(errors);
  if (words.empty()) return absl::StrCat(host, " ", WhatToDo(failure, host));
  const std::string_view name = words.starts_with("ssh: ") ? "" : "ssh: ";
  return absl::StrCat(host, " ", WhatToDo(failure, host), " (", AbslView(name), words, ")");
}

}  // namespace muster
