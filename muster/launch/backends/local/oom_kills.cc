#include "muster/launch/backends/local/oom_kills.h"

#include "absl/strings/str_cat.h"
#include "muster/launch/backends/local/cgroups.h"
#include "muster/launch/backends/local/kernel_file.h"

namespace muster {
namespace {

constexpr char kOomKill[] = "oom_kill";  // in each of the files

std::string TextOf(const std::string& path) { return ReadKernelFile(path).value_or(""); }

}  // namespace

OomKills::OomKills(const Clock& clock, const std::string& proc)
    : clock_(clock),
      group_file_(
          OomCounterFile(TextOf(absl::StrCat(proc, "/self/mountinfo")), TextOf(absl::StrCat(proc, "/self/cgroup")))),
      machine_file_(absl::StrCat(proc, "/vmstat")),
      before_(Read()),
      latest_(before_),
      read_(clock_.Now()) {}

OomKills::Counts OomKills::Read() const {
  Counts counts;
  if (const auto text = group_file_.empty() ? std::nullopt : ReadKernelFile(group_file_))
    counts.group = CgroupCounter(*text, kOomKill);
  counts.machine = CgroupCounter(TextOf(machine_file_), kOomKill);
  return counts;
}

void OomKills::OnTime() {
  if (clock_.Now() < read_ + kLately) return;
  before_ = latest_;
  latest_ = Read();
  read_ = clock_.Now();
}

bool OomKills::WereThereLately(bool elsewhere) const {
  const Counts now = Read();
  if (!elsewhere && now.group.has_value() && before_.group.has_value()) return *now.group > *before_.group;
  return now.machine > before_.machine;
}

}  // namespace muster
