#include "muster/launch/engines/driver/client_program.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/os/memory_file.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/driver/driver_variables.h"
#include "muster/launch/system/program_output.h"
#include "muster/transport/io/socket.h"

namespace muster {
namespace {

constexpr size_t kMostClientWords = 1000;  // bytes of what the program says that are shown

}  // namespace

std::string TextIn(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "?";
}

std::string LastLineSaid(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : OneLine(lines.back(), kMostClientWords);
}

absl::StatusOr<std::string> RunClientProgram(const ClientProgram& program, const std::vector<std::string>& words,
                                             absl::Duration patience) {
  const Socket file(CreateMemoryFile("muster-client"));
  const auto written = Uninterrupted([&] { return write(file.fd(), program.text.data(), program.text.size()); });
  if (written != static_cast<ssize_t>(program.text.size()))
    return absl::UnavailableError(absl::StrCat("no memory for the program that asks ", program.system));
  std::vector<std::string> command = {program.python, absl::StrCat("/proc/", getpid(), "/fd/", file.fd())};
  command.insert(command.end(), words.begin(), words.end());
  const auto output = RunToItsEnd(command, program.environment, patience);
  if (absl::IsNotFound(output.status()) || absl::IsPermissionDenied(output.status()))
    return program.error_of(program.missing, std::string(output.status().message()));
  if (absl::IsDeadlineExceeded(output.status()))
    return program.error_of(kLateClient, absl::StrCat("nothing within ", absl::FormatDuration(patience)));
  RETURN_IF_ERROR(output.status());
  const nlohmann::json answer = nlohmann::json::parse(output->out, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object())
    return program.error_of(
        "failed", absl::StrCat(program.python, " ", output->status.ToString(), ": ", LastLineSaid(output->err)));
  if (!answer.contains("error")) return output->out;
  return program.error_of(TextIn(answer, "error"), OneLine(TextIn(answer, "text"), kMostClientWords));
}

absl::StatusOr<std::string> IdInAnswer(const std::string& system, const std::string& answer) {
  const nlohmann::json object = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  const auto id = object.is_object() ? object.find("id") : object.end();
  if (id == object.end() || !id->is_string() || id->get<std::string>().empty())
    return absl::UnavailableError(
        absl::StrCat("the program that asks ", system, " has answered without the id of a job"));
  return id->get<std::string>();
}

absl::StatusOr<OwnJob> OwnJobOfDriver(const std::vector<std::string>& environment) {
  ASSIGN_OR_RETURN(const DriverVariables driver, ReadDriverVariables(environment));
  OwnJob own{.id = driver.job, .hosts = {}, .says = driver.says};
  for (const auto& [name, address] : driver.hosts) own.hosts.push_back(name);
  return own;
}

}  // namespace muster
