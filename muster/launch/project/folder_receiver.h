// The end of a transfer that brings a folder of a host here (transfer_frames.h), where the host is the sender: asks for
// the files that this folder lacks, and puts each whole file in its place. Files that only this folder has stay. What
// the host sends is checked, so that nothing is written outside of the folder. A state machine over bytes that reads
// and writes the disk. Blocking; not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/project/content_store.h"
#include "muster/launch/project/transfer_frames.h"

namespace muster {

class FolderReceiver {
 public:
  // `folder`: absolute; must exist.
  explicit FolderReceiver(std::string folder);

  // Takes bytes from the sender. After an error, Output has told the sender why.
  [[nodiscard]] absl::Status Take(std::string_view bytes);
  // Files here are to be compared with the sender's, which reads them: call Work until there are none, in pieces, since
  // it takes long.
  bool has_work() const { return has_tree_ && compared_ < files_.size(); }
  // Compares some. Errors are as those of Take.
  [[nodiscard]] absl::Status Work();
  // Returns what is to be given to the sender since the last call.
  std::string Output() { return std::exchange(output_, ""); }
  // All files are here.
  bool done() const { return done_; }

  uint64_t files() const { return received_; }  // that have come
  uint64_t bytes() const { return bytes_; }     // of these
  uint64_t links() const { return links_; }     // symbolic links of the host's folder, which aren't made here

 private:
  absl::Status TakeFrame(const TransferFrame& frame);
  absl::Status TakeTree(const AssembleMessage& assemble);
  absl::Status Compare(uint32_t position);
  // Tells the sender of an error.
  absl::Status Told(const absl::Status& status);
  absl::Status TakeContents(std::string_view bytes);
  // Begins the next missing files, those without bytes included, and is done after the last.
  absl::Status GoOn();
  absl::Status Begin(const TreeFile& file);
  // Whether the file is here with the same contents.
  bool IsHere(const TreeFile& file) const;
  std::string PathOf(const TreeFile& file) const { return JoinPath(folder_, file.file.path); }
  template <typename Message>
  void Send(const Message& message);

  const std::string folder_;
  TransferFrames frames_;
  std::string output_;
  std::vector<TreeFile> files_;
  bool has_tree_ = false;
  uint64_t listed_ = 0;           // bytes of their messages
  size_t compared_ = 0;           // of files_
  std::deque<uint32_t> missing_;  // from the one that arrives on
  std::optional<ContentStore::Incoming> incoming_;
  int64_t left_ = 0;  // bytes of it
  bool done_ = false;
  uint64_t received_ = 0;
  uint64_t bytes_ = 0;
  uint64_t links_ = 0;
};

}  // namespace muster
