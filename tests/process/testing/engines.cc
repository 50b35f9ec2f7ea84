#include "tests/process/testing/engines.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {

std::string OnEveryEngine::NewFolder() {
  if (!WhyNoBed(GetParam()).empty()) return "";
  return bed() == nullptr ? "" : bed()->NewFolder();
}

void OnEveryEngine::SetUp() {
  if (const std::string why = WhyNoBed(GetParam()); !why.empty()) GTEST_SKIP() << why;
  if (!on_hosts()) return;
  aside_ = bed()->shared() + "/aside";
  std::filesystem::create_directory(aside_);
  bed()->Begin();
  if (const std::vector<std::string> hidden = bed()->HiddenFromH0(); !hidden.empty()) hosts().CutFrom("h0", hidden);
}

void OnEveryEngine::TearDown() {
  if (aside_.empty()) return;
  bed()->AwaitNothingLeft();
  if (const std::vector<std::string> hidden = bed()->HiddenFromH0(); !hidden.empty()) hosts().HealFrom("h0", hidden);
  std::filesystem::remove_all(aside_);
}

std::string OnEveryEngine::AboutSleep() const {
  if (!on_hosts()) return "";
  if (engine() == "spark")
    return "muster: the job's driver and its supervisor are on this machine, which must stay on; this terminal may "
           "go\n";
  if (!has(NotOnEngine::kEndWithItsSupervisor))
    return "muster: its supervisor is in the job: this machine may sleep or go\n";
  return absl::StrCat(
      "muster: its supervisor is on this machine: when that is off or asleep for longer than the grace "
      "of ",
      file_grace_, ", the tasks on hosts end; muster train --supervisor HOST keeps it on HOST\n");
}

std::string OnEveryEngine::OutputThatStays() const {
  return engine() == "kubernetes" ? absl::StrCat("output: ", Aside("kept/output"), "\n") : "";
}

std::string OnEveryEngine::Aside(const std::string& name) const {
  return aside_.empty() ? ExperimentsTest::Aside(name) : absl::StrCat(aside_, "/", name);
}

std::vector<std::string> OnEveryEngine::Command(const std::vector<std::string>& arguments) const {
  const std::vector<std::string> words = ExperimentsTest::Command(arguments);
  if (aside_.empty()) return words;
  return bed()->OnH0(words, home() + ".index");
}

std::string OnEveryEngine::MoreOfFile() const {
  if (!on_hosts()) return "";
  const EngineBed::Place place = {.hosts = absl::StrSplit(file_hosts_, ','), .kept = keeps_ ? Aside("kept") : ""};
  return absl::StrCat(bed()->Lines(place), "grace: ", file_grace_, "\n", file_more_);
}

std::string EngineName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace muster
