// The supervisor's end of a transfer to one host (transfer_frames.h): finds out which folders the host sees too, and
// sends it what it lacks of a tree. A state machine: it takes what the task on the host has printed and says what to
// give to its stdin. It reads the tree's files as it goes, and otherwise waits for nothing. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/project/file_copy.h"
#include "muster/launch/project/transfer_frames.h"

namespace muster {

// A stored tree and what is in it; one serves all hosts.
struct DescribedTree {
  std::string folder;
  std::string hash;
  std::vector<TreeFile> files;
};

struct DescribeOptions {
  ListedFiles which = ListedFiles::kNotIgnored;
  std::vector<std::string> left_out = {};   // as in ListProject
  std::function<void()> between = nullptr;  // called after each file: it may take long
  // Called for a file that can't be read, which is left out. Empty: such a file is an error.
  std::function<void(const absl::Status& why)> unreadable = nullptr;
};
// Reads all files that ListProject lists. Errors as those of ListProject and HashFile.
absl::StatusOr<DescribedTree> DescribeTree(const std::string& folder, const DescribeOptions& options = {});

// A file that says by its random text whether a host sees the folder in which it is; removed by the destructor.
class NonceFile {
 public:
  static absl::StatusOr<NonceFile> Make(const std::string& folder);
  // The same with a text that another one has already.
  static absl::StatusOr<NonceFile> Make(const std::string& folder, std::string nonce);
  ~NonceFile();
  NonceFile(NonceFile&& other) noexcept : path_(std::exchange(other.path_, "")), nonce_(std::move(other.nonce_)) {}
  NonceFile& operator=(NonceFile&&) = delete;

  const std::string& path() const { return path_; }
  const std::string& nonce() const { return nonce_; }

 private:
  NonceFile(std::string path, std::string nonce) : path_(std::move(path)), nonce_(std::move(nonce)) {}

  std::string path_;  // empty: moved from
  std::string nonce_;
};

struct TreeSenderOptions {
  std::string job;                     // letters, digits and '-'
  std::vector<std::string> see_paths;  // of nonce files; the first is beside the tree, which isn't sent if that is seen
  std::string nonce;                   // the text of all of them
  // A host that doesn't see the last of see_paths makes a folder of this name for what tasks write
  // (MakeOutputMessage); empty: none does.
  std::string output_name;
  std::vector<std::string> output_before;  // this and what follows as in MakeOutputMessage
  std::string output_next;
  bool output_anew = false;
};

class TreeSender {
 public:
  // Borrows the tree.
  TreeSender(TreeSenderOptions options, const DescribedTree& tree);

  // Takes bytes of the task's stdout. An error is what the host has said, or says that something else has answered.
  [[nodiscard]] absl::Status Take(std::string_view bytes);
  // Returns the next bytes for the task's stdin, "" if there are none now: call it until then, at first and after each
  // Take. Never more than kTransferCredit is on its way. DataLoss: the tree has been changed.
  absl::StatusOr<std::string> Next();
  // The host has all that it needs: end the task's input.
  bool done() const { return done_; }

  // What has been found out, once done.
  const std::set<std::string>& seen() const { return seen_; }  // of see_paths
  const std::string& work() const { return work_; }            // the folder on the host; empty: it sees the tree
  const std::string& output() const { return output_; }        // the folder of output_name; empty: none is made
  bool output_is_other() const { return output_is_other_; }    // OutputMessage::other
  uint64_t files_sent() const { return files_sent_; }
  uint64_t bytes_sent() const { return bytes_sent_; }  // of contents

 private:
  absl::Status TakeFrame(const TransferFrame& frame);
  absl::Status TakeMissing(const TransferFrame& frame);
  // The host has the tree: asks for the folder of output_name, if the host needs one.
  void FinishTree();
  template <typename Message>
  void Queue(const Message& message);
  // Returns the next frame of the list of files, and at its end that which asks for the tree.
  std::string NextOfList();
  // Returns a frame with the next bytes of what is missing, "" if that is all.
  absl::StatusOr<std::string> NextContents();

  const TreeSenderOptions options_;
  const DescribedTree& tree_;
  TransferFrames frames_;
  std::deque<std::string> queue_;  // before the list and contents
  std::optional<size_t> listed_;   // how many files the host was told of; nullopt: it needs no list, or has all of it
  uint64_t given_ = 0;             // bytes, by Next
  uint64_t taken_ = 0;             // of these, by the host
  bool told_missing_ = false;
  std::deque<uint32_t> missing_;    // from the one that is being sent on
  std::optional<FileReader> file_;  // of it
  int64_t left_ = 0;                // bytes of it
  bool asked_ = false;              // for what it sees
  bool done_ = false;
  std::set<std::string> seen_;
  std::string work_;
  bool wants_output_ = false;  // has asked for the folder
  std::string output_;
  bool output_is_other_ = false;
  uint64_t files_sent_ = 0;
  uint64_t bytes_sent_ = 0;
};

}  // namespace muster
