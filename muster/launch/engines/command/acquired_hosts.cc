#include "muster/launch/engines/command/acquired_hosts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr size_t kShownOfLine = 120;
constexpr size_t kLongestValue = 256;
constexpr size_t kMostHosts = 10'000;  // a command that prints without end is no cluster
constexpr char kAcquireLineForms[] =
    "a JSON object a line: {\"host\": NAME}, with address, id, slots or gpus; {\"job\": ID}; {\"waits\": WHY}";

absl::Status WrongLine(std::string_view line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("it printed '", OneLine(line.substr(0, kShownOfLine)), "', ", what,
                                                 "; accepted: ", kAcquireLineForms));
}

// Returns the value of a text or a whole number; nullopt: it is neither, or no word of a command can be like this.
std::optional<std::string> WordOf(const nlohmann::json& value) {
  if (value.is_number_integer()) return value.dump();
  if (!value.is_string()) return std::nullopt;
  const std::string word = value.get<std::string>();
  return word.size() > kLongestValue || word.find('\0') != std::string::npos ? std::nullopt : std::optional(word);
}

absl::StatusOr<std::map<std::string, std::string>> FieldsOf(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return WrongLine(line, "which isn't a JSON object");
  static const std::vector<std::string> known = {"host", "address", "id", "slots", "gpus", "job", "waits"};
  std::map<std::string, std::string> fields;
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return WrongLine(line, absl::StrCat("which has an unknown '", OneLine(name), "'", NearestHint(name, known)));
    const std::optional<std::string> word = WordOf(value);
    if (!word.has_value())
      return WrongLine(line, absl::StrCat("whose ", name, " is no text of ", kLongestValue, " bytes"));
    fields[name] = *word;
  }
  return fields;
}

absl::StatusOr<Host> HostOfFields(std::string_view line, const std::map<std::string, std::string>& fields) {
  std::string words = fields.at("host");
  if (const absl::Status valid = ValidateHostName(words); !valid.ok())
    return WrongLine(line, absl::StrCat("of which ", std::string(valid.message())));
  for (const char* name : {"address", "slots", "gpus"})
    if (const auto field = fields.find(name); field != fields.end())
      absl::StrAppend(&words, " ", name, "=", field->second);
  const absl::StatusOr<Host> host = ParseHostLine(words);
  if (!host.ok()) return WrongLine(line, absl::StrCat("of which ", std::string(host.status().message())));
  return host;
}

}  // namespace

absl::StatusOr<AcquireLine> TakeAcquireLine(std::string_view line, AcquiredHosts& acquired) {
  ASSIGN_OR_RETURN(const auto fields, FieldsOf(line));
  const auto job = fields.find("job"), waits = fields.find("waits"), host = fields.find("host");
  if (host == fields.end() && job != fields.end() && fields.size() == 1) {
    acquired.job = job->second;
    return AcquireLine::kJob;
  }
  if (host == fields.end() && waits != fields.end() && fields.size() == 1) {
    acquired.waits = OneLine(waits->second);
    return AcquireLine::kWaits;
  }
  if (host == fields.end() || job != fields.end() || waits != fields.end())
    return WrongLine(line, "which is none of these");
  if (acquired.hosts.size() == kMostHosts)
    return WrongLine(line, absl::StrCat("a host more than the ", kMostHosts, " that one run may have"));
  ASSIGN_OR_RETURN(Host one, HostOfFields(line, fields));
  for (const Host& before : acquired.hosts)
    if (before.name == one.name) return WrongLine(line, "a host that is there already");
  if (const auto id = fields.find("id"); id != fields.end()) acquired.ids[one.name] = id->second;
  acquired.hosts.push_back(std::move(one));
  return AcquireLine::kHost;
}

}  // namespace muster
