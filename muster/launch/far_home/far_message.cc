#include "muster/launch/far_home/far_message.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/project/sha256.h"

namespace muster {
namespace {

constexpr char kFarGreeting[] = "muster-home 1 ";
constexpr size_t kMostFarGreeting = 128;  // bytes of the first line
constexpr int kFarTries = 3;
constexpr size_t kMostShownOfAnswer = 200;
constexpr size_t kMostOfRefusal = 1000;

absl::Status NoFarMessage(std::string_view text) {
  const std::string_view shown = text.substr(0, kMostShownOfAnswer);
  return absl::DataLossError(text.empty() ? "nothing has come" : absl::StrCat("no answer of muster: ", OneLine(shown)));
}

}  // namespace

std::string HexSha256(std::string_view bytes) {
  Sha256 sha;
  sha.Add(bytes);
  return absl::BytesToHexString(sha.Finish());
}

std::string FarMessageText(const FarMessage& message) {
  const std::string body =
      absl::StrCat(message.head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "\n", message.bytes);
  return absl::StrCat(kFarGreeting, body.size(), " ", HexSha256(body), "\n", body);
}

absl::StatusOr<FarMessage> ParseFarMessage(std::string_view text) {
  const size_t line = text.substr(0, kMostFarGreeting).find('\n');
  if (line == std::string_view::npos || !absl::StartsWith(AbslView(text), kFarGreeting)) return NoFarMessage(text);
  const std::vector<std::string> words = absl::StrSplit(AbslView(text.substr(0, line)), ' ');
  size_t length = 0;
  if (words.size() != 4 || !absl::SimpleAtoi(words[2], &length)) return NoFarMessage(text);
  if (length > kMostFarMessage)
    return absl::DataLossError(absl::StrCat("a message of ", length, " bytes; the most is ", kMostFarMessage));
  const std::string_view body = text.substr(line + 1);
  if (body.size() != length)
    return absl::DataLossError(absl::StrCat("the message was cut: ", body.size(), " bytes of ", length));
  if (HexSha256(body) != words[3]) return absl::DataLossError("the message has another checksum");
  const size_t end = body.find('\n');
  if (end == std::string_view::npos) return NoFarMessage(text);
  FarMessage message;
  message.head = nlohmann::json::parse(body.substr(0, end), nullptr, /*allow_exceptions=*/false);
  if (!message.head.is_object()) return NoFarMessage(text);
  message.bytes = body.substr(end + 1);
  return message;
}

FarMessage FarRefusal(const absl::Status& why) {
  return {.head = {{"error", static_cast<int>(why.code())}, {"text", std::string(why.message())}}};
}

absl::StatusOr<FarMessage> AskFar(JobEngine& engine, const std::string& job, const std::string& verb,
                                  const std::string& id, const FarMessage& question) {
  const std::string text = FarMessageText(question);
  absl::Status cut;
  for (int tries = 0; tries < kFarTries; ++tries) {
    ASSIGN_OR_RETURN(const std::string printed, engine.Ask(job, {"home", verb, id}, text));
    absl::StatusOr<FarMessage> answer = ParseFarMessage(printed);
    cut = answer.status();
    if (!answer.ok()) continue;
    const auto error = answer->head.find("error");
    if (error == answer->head.end()) return answer;
    const auto said = answer->head.find("text");
    const int code = error->is_number_integer() ? error->get<int>() : 0;
    const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
    return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                        said != answer->head.end() && said->is_string()
                            ? OneLine(said->get<std::string>(), kMostOfRefusal)
                            : "it doesn't say why");
  }
  return absl::DataLossError(
      absl::StrCat("job ", job, " was asked ", kFarTries, " times, last: ", std::string(cut.message())));
}

}  // namespace muster
