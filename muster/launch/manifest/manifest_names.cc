#include "muster/launch/manifest/manifest_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/cluster/task_id.h"

namespace muster {
namespace {

constexpr size_t kLongestLabel = 63;
constexpr size_t kLongestDnsName = 253;

bool IsLowerOrDigit(char c) { return absl::ascii_islower(static_cast<unsigned char>(c)) || (c >= '0' && c <= '9'); }

bool IsDnsWord(absl::string_view word) {
  if (word.empty() || word.size() > kLongestLabel || word.front() == '-' || word.back() == '-') return false;
  return std::all_of(word.begin(), word.end(), [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsDnsName(absl::string_view name) {
  const std::vector<absl::string_view> words = absl::StrSplit(name, '.');
  return name.size() <= kLongestDnsName && std::all_of(words.begin(), words.end(), IsDnsWord);
}

bool IsLabelName(absl::string_view name) {
  const auto is_end = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  if (name.empty() || name.size() > kLongestLabel || !is_end(name.front()) || !is_end(name.back())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return is_end(c) || absl::StrContains("-_.", c); });
}

absl::Status WrongName(absl::string_view what, const std::string& name, absl::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat(what, " ", Quoted(name), ": accepted is ", accepted));
}

}  // namespace

std::string JobNameOf(const ManifestRequest& request, const ManifestRole& role) {
  return absl::StrCat(request.name, "-", role.job, request.form == ManifestForm::kJobSet ? "-0" : "");
}

std::string ManifestAddress(const ManifestRequest& request, const ManifestRole& role, int index) {
  const std::string host = absl::StrCat(JobNameOf(request, role), "-", index);
  if (request.form == ManifestForm::kTfJob) return absl::StrCat(host, ":", kManifestPort);
  return absl::StrCat(host, ".", request.name, ":", kManifestPort);
}

bool IsReached(const ManifestRole& role) { return role.job != kEvaluatorJob; }

std::string DnsLabelOf(absl::string_view text) {
  std::string label;
  for (const char c : absl::AsciiStrToLower(text)) {
    if (IsLowerOrDigit(c))
      label += c;
    else if (!label.empty() && label.back() != '-')
      label += '-';
  }
  const size_t first = std::find_if(label.begin(), label.end(), absl::ascii_isalpha) - label.begin();
  label.erase(0, first);
  while (absl::EndsWith(label, "-")) label.pop_back();
  return label;
}

absl::Status CheckDnsLabel(absl::string_view what, const std::string& name) {
  if (IsDnsWord(name) && absl::ascii_isalpha(static_cast<unsigned char>(name[0]))) return absl::OkStatus();
  return WrongName(what, name, "a name of lower-case letters, digits and '-', at most 63, beginning with a letter");
}

absl::Status CheckDnsName(absl::string_view what, const std::string& name) {
  if (IsDnsName(name)) return absl::OkStatus();
  return WrongName(what, name, "a name of lower-case letters, digits, '-' and '.'");
}

absl::Status CheckSecretKey(absl::string_view what, const std::string& key) {
  const bool has_letters = std::all_of(key.begin(), key.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_.", c);
  });
  if (has_letters && !key.empty() && key.size() <= kLongestDnsName && key != "." && !absl::StartsWith(key, ".."))
    return absl::OkStatus();
  return WrongName(what, key, "a key of letters, digits, '-', '_' and '.', not beginning with \"..\"");
}

absl::Status CheckLabelKey(absl::string_view what, const std::string& key) {
  const size_t slash = key.find('/');
  const bool has_prefix = slash != std::string::npos;
  if ((!has_prefix || IsDnsName(key.substr(0, slash))) && IsLabelName(has_prefix ? key.substr(slash + 1) : key))
    return absl::OkStatus();
  return WrongName(what, key, "a key such as team or example.org/team");
}

absl::Status CheckLabelValue(absl::string_view what, const std::string& value) {
  if (value.empty() || IsLabelName(value)) return absl::OkStatus();
  return WrongName(what, value, "a value of letters, digits, '-', '_' and '.', at most 63");
}

}  // namespace muster
