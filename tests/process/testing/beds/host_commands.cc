#include "tests/process/testing/beds/host_commands.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/launch/system/shell_word.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Each file in the folder is a job, whose hosts are held. $1: the folder; the others are hosts.
constexpr char kAcquire[] = R"sh(
job=$(mktemp "$1/held/job.XXXXXX") || exit 1
echo "{\"job\": \"${job##*/}\"}"
shift
for host; do echo "{\"host\": \"$host\", \"address\": \"10.77.0.1${host#h}\"}"; done
)sh";

}  // namespace

void HostCommands::WriteScript(const std::string& name, const std::string& lines) const {
  std::ofstream(File(name)) << "#!/bin/sh\n" << lines << "\n";
  fs::permissions(File(name), fs::perms::owner_all);
}

void HostCommands::Write() const {
  fs::create_directories(File("held"));
  WriteScript("acquire", kAcquire);
  std::string ways = "host=$1\nshift\ncase $host in\n";
  for (const std::string& host : hosts_.names()) {
    // Nothing of the supervisor's environment is there.
    const std::vector<std::string> words = Joined({"env", "-i", "PATH=/usr/bin:/bin"}, hosts_.On(host, {}));
    absl::StrAppend(
        &ways, "  ", host, ") exec ",
        absl::StrJoin(words, " ",
                      [](std::string* out, const std::string& word) { absl::StrAppend(out, ShellWord(word)); }),
        " \"$@\" ;;\n");
  }
  WriteScript("enter", ways + "esac");
  // To release twice is no mistake.
  WriteScript("release", "rm -f \"$1/held/$2\"");
}

std::string HostCommands::Lines(const std::vector<std::string>& hosts) const {
  return absl::StrCat("on: command\nhosts: ", hosts.size(), "\nhosts_by:\n  acquire: {argv: [", File("acquire"), ", ",
                      folder_, ", ", absl::StrJoin(hosts, ", "), "]}\n  start: {argv: [", File("enter"),
                      ", '{host}', '{agent}']}\n  release: {argv: [", File("release"), ", ", folder_, ", '{job}']}\n");
}

void HostCommands::ExpectAllGivenBack() const {
  EXPECT_THAT(EntriesOf(File("held")), ::testing::IsEmpty()) << "jobs whose hosts nobody has released";
}

}  // namespace muster
