#include "muster/launch/hosts/host_list.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/file_mistakes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr int kMostSlots = 10'000;
constexpr std::string_view kNameCharacters = "._-@:[]%";

std::optional<int> NumberIn(std::string_view text, int least) {
  int number = 0;
  if (!absl::SimpleAtoi(AbslView(text), &number)) return std::nullopt;
  if (number < least || number > kMostSlots) return std::nullopt;
  return number;
}

absl::Status NotANumber(std::string_view what, std::string_view value, int least) {
  return absl::InvalidArgumentError(
      absl::StrCat(AbslView(what), " is '", AbslView(value), "'; accepted: ", least, " to ", kMostSlots));
}

// Divides "b:4" at the colon of the slots. A colon of an IPv6 address isn't one: there are several, or brackets.
std::pair<std::string_view, std::optional<std::string_view>> NameAndSlots(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, std::nullopt};
  const std::string_view name = text.substr(0, colon);
  const bool is_address = name.find(':') != std::string_view::npos && (name.empty() || name.back() != ']');
  if (is_address) return {text, std::nullopt};
  return {name, text.substr(colon + 1)};
}

// Sets one "key=value" of a host file's line.
absl::Status SetField(std::string_view field, Host& host) {
  const size_t equals = field.find('=');
  const std::string key(field.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? "" : field.substr(equals + 1);
  if (key == "slots") {
    host.slots = NumberIn(value, 1);
    return host.slots.has_value() ? absl::OkStatus() : NotANumber(key, value, 1);
  }
  if (key == "gpus") {
    host.gpus = NumberIn(value, 0);
    return host.gpus.has_value() ? absl::OkStatus() : NotANumber(key, value, 0);
  }
  if (key != "address")
    return absl::InvalidArgumentError(absl::StrCat("'", AbslView(field), "' isn't known",
                                                   NearestHint(key, {"slots", "gpus", "address"}),
                                                   "; accepted: ", kHostLineForms));
  host.address = std::string(value);
  const absl::Status valid = ValidateHostName(value);
  if (valid.ok()) return valid;
  return absl::InvalidArgumentError(absl::StrCat("address: ", std::string(valid.message())));
}

}  // namespace

absl::Status ValidateHostName(std::string_view name) {
  bool valid = !name.empty() && name.front() != '-' && name.front() != '@' && name.back() != '@';
  for (const char c : name) valid = valid && (absl::ascii_isalnum(c) || kNameCharacters.find(c) != std::string::npos);
  // The part behind the user's name is an argument of its own for some programs.
  if (valid && name.find("@-") == std::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", OneLine(name),
                                                 "' isn't a host's name; accepted: NAME, USER@NAME or an address, of "
                                                 "letters, digits and . _ - : [ ] %"));
}

absl::StatusOr<Host> ParseHostLine(std::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(AbslView(line), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  Host host{.name = words.empty() ? "" : words.front()};
  RETURN_IF_ERROR(ValidateHostName(host.name));
  for (size_t i = 1; i < words.size(); ++i) RETURN_IF_ERROR(SetField(words[i], host));
  return host;
}

absl::StatusOr<std::vector<Host>> ParseHostList(std::string_view text) {
  std::vector<Host> hosts;
  std::set<std::string> seen;
  for (const absl::string_view whole : absl::StrSplit(AbslView(text), ',')) {
    const std::string part(absl::StripAsciiWhitespace(whole));
    if (part.find_first_of(" \t") != std::string::npos)
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' has a blank in it; accepted: hosts with commas between them, as h1,h2"));
    const auto [name, slots] = NameAndSlots(part);
    Host host{.name = std::string(name)};
    RETURN_IF_ERROR(ValidateHostName(name));
    if (slots.has_value()) {
      host.slots = NumberIn(*slots, 1);
      if (!host.slots.has_value()) return NotANumber(absl::StrCat("slots of ", host.name), *slots, 1);
    }
    if (!seen.insert(host.name).second)
      return absl::InvalidArgumentError(absl::StrCat(
          "'", host.name, "' is there twice; accepted: each host once, with its slots, as ", host.name, ":2"));
    hosts.push_back(std::move(host));
  }
  return hosts;
}

absl::StatusOr<std::vector<Host>> ParseHostFile(std::string_view text, const std::string& file) {
  std::vector<Host> hosts;
  FileMistakes mistakes(file);
  std::set<std::string> seen;
  int number = 0;
  for (const absl::string_view whole : absl::StrSplit(AbslView(text), '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    absl::StatusOr<Host> host = ParseHostLine({line.data(), line.size()});
    if (!host.ok()) {
      mistakes.Add(number, "host", host.status());
    } else if (!seen.insert(host->name).second) {
      mistakes.Add(number, "host", absl::StrCat("'", host->name, "' is there twice"), "each host once, with slots=N");
    } else {
      hosts.push_back(*std::move(host));
    }
  }
  RETURN_IF_ERROR(mistakes.status());
  if (hosts.empty())
    return absl::InvalidArgumentError(absl::StrCat(file, ": has no host; accepted: lines of ", kHostLineForms));
  return hosts;
}

absl::StatusOr<std::vector<Host>> ReadHostFile(const std::string& path) {
  const absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(path);
  if (absl::IsNotFound(text.status()))
    return absl::NotFoundError(
        absl::StrCat("the host file '", path, "' isn't there; accepted: a file with lines of ", kHostLineForms));
  RETURN_IF_ERROR(text.status());
  return ParseHostFile(*text, path);
}

}  // namespace muster
