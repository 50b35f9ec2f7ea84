#include "muster/launch/engines/kubernetes/object_calls.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "muster/launch/engines/kubernetes/pod_job.h"

namespace muster {
namespace {

constexpr absl::Duration kTryPatience = absl::Seconds(20);
constexpr absl::Duration kMakePatience = absl::Minutes(2);
constexpr absl::Duration kPagePatience = absl::Seconds(10);  // somebody waits for what they asked
constexpr int kPodsOfPage = 500;                             // as kubectl's own pages
// kubectl sends 50 a second at most; a cluster with webhooks takes longer for each.
constexpr absl::Duration kPatiencePerObject = absl::Milliseconds(500);
constexpr char kBetweenObjects[] = "\n---\n";

absl::Duration PatienceFor(absl::Duration least, size_t objects) { return least + objects * kPatiencePerObject; }

// As a query has it.
std::string PercentEncoded(const std::string& text) {
  std::string encoded;
  for (const char byte : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(byte)) || absl::StrContains("-._~", absl::string_view(&byte, 1)))
      encoded += byte;
    else
      absl::StrAppend(&encoded, "%", absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
  }
  return encoded;
}

std::string SelectorOf(const std::string& job) { return absl::StrCat("--selector=", kJobLabel, "=", job); }

}  // namespace

size_t ObjectsIn(const std::string& documents) {
  size_t objects = 1;
  for (size_t at = documents.find(kBetweenObjects); at != std::string::npos;
       at = documents.find(kBetweenObjects, at + 1))
    ++objects;
  return objects;
}

KubectlCall TryCall(const std::string& manifest) {
  return {.words = {"create", "--dry-run=server", "--output=name", "--filename=-"},
          .input = manifest,
          .patience = PatienceFor(kTryPatience, ObjectsIn(manifest))};
}

KubectlCall CreateCall(const std::string& documents, const std::string& output) {
  return {.words = {"create", absl::StrCat("--output=", output), "--filename=-"},
          .input = documents,
          .patience = PatienceFor(kMakePatience, ObjectsIn(documents))};
}

KubectlCall PodPageCall(const std::string& name_space, const std::vector<std::string>& jobs, const std::string& next) {
  const std::string selector = absl::StrCat(kJobLabel, " in (", absl::StrJoin(jobs, ","), ")");
  std::string path = absl::StrCat("/api/v1/namespaces/", name_space, "/pods?limit=", kPodsOfPage,
                                  "&labelSelector=", PercentEncoded(selector));
  if (!next.empty()) absl::StrAppend(&path, "&continue=", PercentEncoded(next));
  return {.words = {"get", absl::StrCat("--raw=", path)}, .patience = kPagePatience};
}

// The Service and the Secret have the job's name: to find them by the label would need the right to list Secrets.
std::vector<KubectlCall> DeleteCalls(const std::string& job, size_t pods, bool at_once) {
  const auto deletion = [at_once](std::vector<std::string> words, size_t objects) {
    words.insert(words.begin(), "delete");
    words.insert(words.end(), {"--ignore-not-found", "--wait=false"});
    if (at_once) words.emplace_back("--now");
    return KubectlCall{.words = std::move(words), .patience = PatienceFor(kMakePatience, objects)};
  };
  return {deletion({"pods", SelectorOf(job)}, pods),
          deletion({absl::StrCat("services/", job), absl::StrCat("secrets/", job)}, 2)};
}

}  // namespace muster
