#include "muster/launch/project/transfer_frames.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

constexpr size_t kHeaderBytes = 5;
constexpr size_t kMissingInFrame = 16'384;
constexpr std::string_view kGreeting = kTransferGreeting;

absl::Status CheckPath(const std::string& path) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrCat("a tree can't have the path '", path, "'"));
  };
  if (path.empty() || path.find('\0') != std::string::npos) return wrong();
  for (const absl::string_view part : absl::StrSplit(path, '/'))
    if (part.empty() || part == "." || part == "..") return wrong();
  return absl::OkStatus();
}

absl::Status CheckFile(const TreeFile& one) {
  const ProjectFile& file = one.file;
  if (const absl::Status path = CheckPath(file.path); !path.ok()) return path;
  const bool regular = !file.empty_folder && file.link_to.empty();
  if (file.bytes < 0 || (!regular && file.bytes != 0) || (file.empty_folder && !file.link_to.empty()) ||
      one.digest.size() != kDigestBytes || file.link_to.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("a tree can't have such a file: ", file.path));
  return absl::OkStatus();
}

}  // namespace

std::string TransferFrameOf(TransferKind kind, const std::string& body) {
  std::string frame(1, static_cast<char>(kind));
  for (int i = 0; i < 4; ++i) frame += static_cast<char>((body.size() >> (8 * i)) & 0xFF);
  return frame + body;
}

absl::StatusOr<std::optional<TransferFrame>> TransferFrames::Next() {
  if (!greeted_) {
    const size_t compared = std::min(bytes_.size(), kGreeting.size());
    if (std::string_view(bytes_).substr(0, compared) != kGreeting.substr(0, compared))
      return absl::InvalidArgumentError("another program answers in place of `muster receive` of this version");
    if (compared < kGreeting.size()) return std::nullopt;
    greeted_ = true;
    bytes_.erase(0, compared);
    taken_ += compared;
  }
  if (bytes_.size() < kHeaderBytes) return std::nullopt;
  size_t size = 0;
  for (int i = 0; i < 4; ++i) size |= size_t{static_cast<unsigned char>(bytes_[1 + i])} << (8 * i);
  if (size > kMaxTransferFrame) return absl::InvalidArgumentError(absl::StrCat("a frame of ", size, " bytes"));
  if (bytes_.size() < kHeaderBytes + size) return std::nullopt;
  TransferFrame frame{.kind = static_cast<TransferKind>(bytes_[0]), .body = bytes_.substr(kHeaderBytes, size)};
  bytes_.erase(0, kHeaderBytes + size);
  taken_ += kHeaderBytes + size;
  return frame;
}

absl::Status TransferFrames::TakeAll(std::string_view bytes,
                                     absl::FunctionRef<absl::Status(const TransferFrame&)> take) {
  Add(bytes);
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<TransferFrame> frame, Next());
    if (!frame.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(take(*frame));
  }
}

std::string TransferFrames::Told() {
  if (taken_ - told_ < kTransferTold) return "";
  told_ = taken_;
  return TransferFrameOf(TransferKind::kTaken, Encode(TakenMessage{.bytes = told_}));
}

std::string MissingFrames(const std::deque<uint32_t>& missing) {
  std::string frames;
  for (size_t at = 0; at < missing.size(); at += kMissingInFrame) {
    const auto from = missing.begin() + static_cast<int64_t>(at);
    const auto to = missing.begin() + static_cast<int64_t>(std::min(at + kMissingInFrame, missing.size()));
    frames += TransferFrameOf(TransferKind::kMissing, Encode(MissingMessage{.files = {from, to}}));
  }
  return frames + TransferFrameOf(TransferKind::kMissing, Encode(MissingMessage{.last = true}));
}

absl::Status CheckTreeFiles(const std::vector<TreeFile>& files) {
  std::set<std::string> paths;  // of what nothing can be below
  const std::string* before = nullptr;
  for (const TreeFile& one : files) {
    if (const absl::Status checked = CheckFile(one); !checked.ok()) return checked;
    const std::string& path = one.file.path;
    if (before != nullptr && *before >= path)
      return absl::InvalidArgumentError(absl::StrCat("the path '", path, "' comes after '", *before, "'"));
    before = &path;
    for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
      if (paths.contains(path.substr(0, slash)))
        return absl::InvalidArgumentError(absl::StrCat("the path '", path, "' is below one that is no folder"));
    paths.insert(path);
  }
  return absl::OkStatus();
}

}  // namespace muster
