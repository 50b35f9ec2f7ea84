#include "muster/launch/system/host_system.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

std::string VersionText(const GlibcVersion& version) { return absl::StrCat(version.major, ".", version.minor); }

// What hosts and files say may be long, and may have control characters in it.
std::string Shown(const std::string& text) { return OneLine(text, 64); }

}  // namespace

std::optional<GlibcVersion> GlibcOfHost(std::string_view getconf_output) {
  const std::string text(absl::StripAsciiWhitespace(AbslView(getconf_output)));
  constexpr std::string_view kName = "glibc ";
  if (!text.starts_with(kName)) return std::nullopt;
  return ParseGlibcVersion(std::string_view(text).substr(kName.size()));
}

absl::Status CheckRunsOn(const std::string& host, const HostSystem& system, const ElfNeeds& muster) {
  if (system.machine != muster.machine)
    return absl::FailedPreconditionError(absl::StrCat("host ", host, " is ", Shown(system.machine), ", this muster is ",
                                                      muster.machine, "; build muster on a host of ", host,
                                                      "'s kind and install it there"));
  if (const std::vector<std::string> libraries = LibrariesBeyondGlibc(muster); !libraries.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("this muster can't be copied to host ", host, ", because it needs more than the C library: ",
                     Shown(absl::StrJoin(libraries, ", ")), "; use one of ./dev build, or install muster there"));
  if (!muster.least_glibc.has_value()) return absl::OkStatus();
  const std::string least = VersionText(*muster.least_glibc);
  if (!system.glibc.has_value())
    return absl::FailedPreconditionError(absl::StrCat(
        "host ", host, " has another C library than glibc (musl, as Alpine Linux has?), this muster needs glibc ",
        least, "; use a host or a container with glibc, or install a muster there that is built for ", host));
  if (*system.glibc < *muster.least_glibc)
    return absl::FailedPreconditionError(
        absl::StrCat("host ", host, " has glibc ", VersionText(*system.glibc), ", this muster needs ", least,
                     "; build muster on a system as old as ", host, "'s, or install it there"));
  return absl::OkStatus();
}

}  // namespace muster
