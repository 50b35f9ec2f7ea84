#include "muster/launch/engines/driver/driver_lines.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr size_t kMostNews = 2048;  // bytes that are kept of what is said

// Bytes that aren't UTF-8 are replaced.
std::string LineOfObject(const nlohmann::json& object) {
  return object.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string LineOf(const DriverStart& start) {
  return LineOfObject({{"start", start.host},
                       {"number", start.number},
                       {"arguments", start.arguments},
                       {"rendezvous", start.rendezvous}});
}

std::string RendezvousLine(const std::string& rendezvous) { return LineOfObject({{"rendezvous", rendezvous}}); }

std::string EndStartLine(uint64_t number) { return LineOfObject({{"end", number}}); }

std::string EndAllLine(bool at_once) { return LineOfObject({{"end_all", at_once ? "at once" : "gently"}}); }

absl::StatusOr<DriverNews> ParseDriverNews(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  constexpr struct {
    const char* name;
    DriverNews::Kind kind;
  } kKinds[] = {
      {"line", DriverNews::Kind::kLine}, {"waits", DriverNews::Kind::kWaits}, {"ended", DriverNews::Kind::kEnded}};
  if (object.is_object() && object.contains("number") && object["number"].is_number_unsigned())
    for (const auto& [name, kind] : kKinds)
      if (object.contains(name) && object[name].is_string())
        return DriverNews{.kind = kind,
                          .number = object["number"].get<uint64_t>(),
                          .text = OneLine(object[name].get<std::string>(), kMostNews),
                          .for_ever = object.contains("for_ever") && object["for_ever"] == true};
  return absl::InvalidArgumentError(
      absl::StrCat("the job's driver has said something else than expected: ", OneLine(line.substr(0, 200))));
}

}  // namespace muster
