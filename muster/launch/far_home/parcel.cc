#include "muster/launch/far_home/parcel.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/project/sha256.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {
namespace {

constexpr size_t kMostAskedFile = 64 << 20;  // bytes of experiment.json
constexpr size_t kReadAtOnce = size_t{1} << 20;
// A job that forgets what it has got isn't sent the same for ever.
constexpr int kMostStalls = 20;

std::string LineOfJson(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

uint64_t NumberIn(const nlohmann::json& head, const char* key) {
  const auto found = head.find(key);
  return found != head.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

bool TruthIn(const nlohmann::json& head, const char* key) {
  const auto found = head.find(key);
  return found != head.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

void Parcel::Add(const std::string& text) {
  pieces_.push_back({.text = text, .bytes = text.size()});
  size_ += text.size();
}

void Parcel::AddEntry(const std::string& path, const std::string& kind, const std::string& text) {
  Add(LineOfJson({{"path", path}, {"kind", kind}, {"bytes", text.size()}}));
  if (!text.empty()) Add(text);
}

absl::Status Parcel::AddRun(const Home& home, const ParcelOrder& order) {
  FileSystem& files = PosixFileSystem();
  Add(LineOfJson({{"id", order.id.ToString()}, {"job", order.job}, {"home", home.path()}, {"tree", order.tree}}));
  ASSIGN_OR_RETURN(const std::string asked, files.ReadShortFile(home.experiment_file(order.id.number), kMostAskedFile));
  AddEntry("experiment.json", "f", asked);
  ASSIGN_OR_RETURN(const std::string job, files.ReadFile(home.job(order.id)));
  AddEntry("job", "f", job);
  if (const auto records = files.ReadFile(home.records(order.id)); records.ok()) AddEntry("records", "f", *records);
  const auto tasks = files.ListDirectory(home.logs(order.id));
  if (!tasks.ok()) return absl::OkStatus();
  for (const std::string& task : *tasks) {
    const std::vector<int64_t> numbers = LogFileNumbers(JoinPath(home.logs(order.id), task));
    if (IsTaskFolder(task) && !numbers.empty())
      AddEntry(absl::StrCat("logs/", task, "/", LogFileName(numbers.back() + 1)), "f", "");
  }
  return absl::OkStatus();
}

absl::Status Parcel::AddTree(const Home& home, const std::string& tree) {
  const std::string folder = JoinPath(home.trees(), tree);
  ASSIGN_OR_RETURN(const ProjectFiles files, ListProject(folder, {}, ListedFiles::kAll));
  for (const ProjectFile& file : files.files) {
    const char* kind = file.empty_folder ? "d" : !file.link_to.empty() ? "l" : file.executable ? "x" : "f";
    const uint64_t bytes = *kind == 'd' || *kind == 'l' ? 0 : static_cast<uint64_t>(file.bytes);
    nlohmann::json entry = {{"path", absl::StrCat("tree/", file.path)}, {"kind", kind}, {"bytes", bytes}};
    if (*kind == 'l') entry["to"] = file.link_to;
    Add(LineOfJson(entry));
    if (bytes == 0) continue;
    pieces_.push_back({.file = file.path, .folder = folder, .bytes = bytes});
    size_ += bytes;
  }
  return absl::OkStatus();
}

absl::Status Parcel::Seal() {
  Sha256 sha;
  for (uint64_t done = 0; done < size_;) {
    ASSIGN_OR_RETURN(const std::string bytes, Read(done, kReadAtOnce));
    sha.Add(bytes);
    done += bytes.size();
  }
  name_ = absl::BytesToHexString(sha.Finish());
  return absl::OkStatus();
}

absl::StatusOr<Parcel> Parcel::Make(const Home& home, const ParcelOrder& order) {
  Parcel parcel;
  RETURN_IF_ERROR(parcel.AddRun(home, order));
  if (order.with_tree) RETURN_IF_ERROR(parcel.AddTree(home, order.tree));
  RETURN_IF_ERROR(parcel.Seal());
  return parcel;
}

absl::StatusOr<std::string> Parcel::Read(uint64_t offset, size_t most) const {
  std::string bytes;
  uint64_t begin = 0;
  for (const Piece& piece : pieces_) {
    const uint64_t end = begin + piece.bytes;
    const uint64_t from = std::max(offset + bytes.size(), begin);
    if (from < end && bytes.size() < most) {
      const size_t wanted = static_cast<size_t>(std::min<uint64_t>(end - from, most - bytes.size()));
      std::string read = piece.text.substr(piece.file.empty() ? from - begin : 0, wanted);
      if (!piece.file.empty()) {
        ASSIGN_OR_RETURN(read, ReadBelow(piece.folder, piece.file, from - begin, wanted));
      }
      if (read.size() != wanted)
        return absl::DataLossError(absl::StrCat(JoinPath(piece.folder, piece.file), " has become shorter"));
      bytes += read;
    }
    begin = end;
  }
  return bytes;
}

absl::Status SendParcel(const Home& home, JobEngine& engine, const ParcelOrder& order) {
  nlohmann::json head = {{"parcel", ""}, {"size", 0}, {"job", order.job}, {"tree", order.tree}, {"offset", 0}};
  const std::string id = order.id.ToString();
  ASSIGN_OR_RETURN(FarMessage answer, AskFar(engine, order.job, "receive", id, {.head = head}));
  if (TruthIn(answer.head, "done")) return absl::OkStatus();
  ParcelOrder needed = order;
  needed.with_tree = order.with_tree && !TruthIn(answer.head, "has_tree");
  ASSIGN_OR_RETURN(const Parcel parcel, Parcel::Make(home, needed));
  head["parcel"] = parcel.name();
  head["size"] = parcel.size();
  // What an earlier process has sent counts.
  ASSIGN_OR_RETURN(answer, AskFar(engine, order.job, "receive", id, {.head = head}));
  for (int stalls = 0; !TruthIn(answer.head, "done");) {
    const uint64_t have = NumberIn(answer.head, "have");
    head["offset"] = have;
    ASSIGN_OR_RETURN(std::string bytes, parcel.Read(have, kMostFarBytes));
    ASSIGN_OR_RETURN(answer, AskFar(engine, order.job, "receive", id, {.head = head, .bytes = std::move(bytes)}));
    if (NumberIn(answer.head, "have") <= have && !TruthIn(answer.head, "done") && ++stalls > kMostStalls)
      return absl::UnavailableError(absl::StrCat("job ", order.job, " has taken ", have, " of ", parcel.size(),
                                                 " bytes of the experiment, and takes no more"));
  }
  return absl::OkStatus();
}

}  // namespace muster
