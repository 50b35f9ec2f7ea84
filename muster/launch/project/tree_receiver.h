// The end of a transfer on a host (transfer_frames.h): keeps the contents of files below the user's cache, asks for
// what is missing, and makes a folder of the tree for one run to work in:
//
//   CACHE/files/HH/HASH   contents, used again by later runs (ContentStore)
//   CACHE/work/HOST/JOB   what this host's tasks of the job work in; HOST is its own, since hosts may share CACHE
//   OUTPUTS/NAME          what they write, if the host doesn't see the folder of the supervisor's machine; it stays
//
// A state machine over bytes that reads and writes the disk. Blocking; not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/launch/project/content_store.h"
#include "muster/launch/project/transfer_frames.h"

namespace muster {

struct ReceivePlace {
  std::string cache;    // absolute: ~/.cache/muster
  std::string host;     // a name that no other host has, in this boot
  std::string outputs;  // absolute: ~/.muster/output
  std::string works() const { return cache + "/work/" + host; }
  std::string work(const std::string& job) const { return works() + "/" + job; }
};

// Returns where this host receives. `home`, `xdg_cache_home`: the variables HOME and XDG_CACHE_HOME, "" if not set.
// FailedPrecondition: neither is an absolute path, or the host has no usable name.
absl::StatusOr<ReceivePlace> PlaceToReceive(const std::string& home, const std::string& xdg_cache_home,
                                            const std::string& host_name);

// InvalidArgument unless it has 1 to 64 letters, digits and '-'.
[[nodiscard]] absl::Status CheckReceivedJob(const std::string& job);

// Contents and setups that weren't used, and folders of other boots that weren't touched, for so long are removed.
inline constexpr absl::Duration kContentsKept = absl::Hours(24 * 30);

// Removes those; of this host's own folders those whose job doesn't live; and what killed processes have left for a
// day.
void SweepReceived(const ReceivePlace& place, absl::Time now, const std::function<bool(const std::string& job)>& lives);
// Removes what `setup` has made for a content that no run has begun to use for 30 days.
void SweepSetups(const ReceivePlace& place, absl::Time now);

class TreeReceiver {
 public:
  explicit TreeReceiver(ReceivePlace place);

  // Takes bytes from the sender. After an error, Output has told the sender why.
  [[nodiscard]] absl::Status Take(std::string_view bytes);
  // Returns what is to be written since the last call.
  std::string Output() { return std::exchange(output_, ""); }
  // The folder is made, and the sender has been told.
  bool done() const { return done_; }

 private:
  absl::Status TakeFrame(const TransferFrame& frame);
  absl::Status Take(const SeeMessage& see);
  absl::Status Take(FilesMessage files);
  absl::Status Take(const AssembleMessage& assemble);
  absl::Status Take(const ContentsMessage& contents);
  absl::Status Take(const MakeOutputMessage& make);
  // Begins the next missing files, those without bytes included, and assembles the tree after the last.
  absl::Status GoOn();
  absl::Status Assemble();
  absl::Status MakeFile(const TreeFile& file, const std::string& folder) const;
  template <typename Message>
  void Send(const Message& message);

  const ReceivePlace place_;
  const ContentStore store_;
  TransferFrames frames_;
  std::string output_;
  std::vector<TreeFile> files_;
  std::optional<AssembleMessage> assemble_;
  std::deque<uint32_t> missing_;  // from the one that arrives on
  std::optional<ContentStore::Incoming> incoming_;
  int64_t left_ = 0;  // bytes of it
  bool done_ = false;
};

}  // namespace muster
