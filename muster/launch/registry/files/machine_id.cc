#include "muster/launch/registry/files/machine_id.h"

#include <unistd.h>

#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/process_identity.h"

namespace muster {
namespace {

constexpr char kUnknownPart[] = "-";

std::string PartText(const std::string& part) { return part.empty() ? kUnknownPart : part; }
std::string PartOfText(const std::string& text) { return text == kUnknownPart ? "" : text; }

}  // namespace

MachineId MachineId::This() {
  MachineId machine;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) machine.host = name.data();
  const auto boot = PosixFileSystem().ReadFile("/proc/sys/kernel/random/boot_id");
  if (boot.ok()) machine.boot = std::string(absl::StripAsciiWhitespace(*boot));
  if (const uint64_t pids = PidNamespace(); pids != 0) machine.pid_numbers = absl::StrCat(pids);
  return machine;
}

MachineId MachineId::Parse(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(AbslView(text), ' ');
  if (parts.size() != 3) return {};
  return {.host = PartOfText(parts[0]), .boot = PartOfText(parts[1]), .pid_numbers = PartOfText(parts[2])};
}

std::string MachineId::ToString() const {
  return absl::StrCat(PartText(host), " ", PartText(boot), " ", PartText(pid_numbers));
}

}  // namespace muster
