#include "muster/launch/registry/files/other_home.h"

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

constexpr size_t kMostOtherHome = 8 << 10;  // bytes of the file
constexpr size_t kMostHomePath = 4 << 10;

bool IsHomePath(const std::string& path) {
  return path.size() > 1 && path.size() <= kMostHomePath && path.front() == '/' && path.back() != '/' &&
         path.find('\0') == std::string::npos && std::filesystem::path(path).lexically_normal().string() == path;
}

}  // namespace

std::optional<OtherHome> ReadOtherHome(const std::string& file) {
  const auto text = PosixFileSystem().ReadShortFile(file, kMostOtherHome);
  if (!text.ok()) return std::nullopt;
  const nlohmann::json object = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const auto home = object.find("home"), elsewhere = object.find("elsewhere");
  if (home == object.end() || !home->is_string() || elsewhere == object.end() || !elsewhere->is_boolean())
    return std::nullopt;
  OtherHome other{.path = home->get<std::string>(), .elsewhere = elsewhere->get<bool>()};
  if (!IsHomePath(other.path)) return std::nullopt;
  return other;
}

absl::Status WriteOtherHome(const std::string& file, const OtherHome& other) {
  if (!IsHomePath(other.path))
    return absl::InvalidArgumentError(absl::StrCat("'", other.path, "' can't be a MUSTER_HOME"));
  if (ReadOtherHome(file) == other) return absl::OkStatus();
  const nlohmann::json object = {{"home", other.path}, {"elsewhere", other.elsewhere}};
  return ReplaceFile(file, object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                     Durability::kDisk);
}

std::string PathOnThisSide(const OtherHome& other, const std::string& home, const std::string& path) {
  if (!absl::StartsWith(path, absl::StrCat(other.path, "/"))) return path;
  const std::string below = path.substr(other.path.size() + 1);
  const std::filesystem::path plain = std::filesystem::path(below).lexically_normal();
  // A path that leaves the home is none below it.
  return plain.empty() || *plain.begin() == ".." || plain.is_absolute() ? path : JoinPath(home, below);
}

}  // namespace muster
