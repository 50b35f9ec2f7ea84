// What `muster receive`, or `muster send`, and the supervisor say to each other over the stdin and stdout of a task
// (docs/host_files.md): the line kTransferGreeting from each side, then frames of a kind (1 byte), a length (4 bytes,
// lowest first) and a protocol buffer. Everything that is read here comes from outside and is checked. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/project/project_tree.h"
#include "muster/transport/messages/fields.h"

namespace muster {

inline constexpr char kTransferGreeting[] = "muster receive 1\n";
inline constexpr size_t kMaxTransferFrame = size_t{128} << 10;  // bytes of a message
inline constexpr size_t kTransferCredit = size_t{1} << 20;      // bytes that the receiver hasn't told to have taken
inline constexpr size_t kTransferTold = size_t{256} << 10;      // it tells at least this often
inline constexpr size_t kTransferPiece = size_t{48} << 10;      // bytes of contents in one frame
inline constexpr size_t kDigestBytes = 32;
inline constexpr size_t kMostTransferFiles = 1'000'000;  // in one tree

// The numbers are written to the wire: never renumber.
enum class TransferKind : uint8_t {
  kSee = 1,       // to the host; answered by kSeen
  kFiles = 2,     // to the host, any number of them
  kAssemble = 3,  // to the host, after all files; answered by kMissing
  kContents = 4,  // to the host: the next bytes of what is missing, in its order
  kSeen = 5,
  kMissing = 6,  // the last one says so
  kTaken = 7,
  kDone = 8,
  kFailed = 9,
  kMakeOutput = 10,  // to the host, when it has the tree; answered by kOutput
  kOutput = 11,
};

// Whether files with just this text are where the sender has made them.
struct SeeMessage {
  static constexpr TransferKind kKind = TransferKind::kSee;
  std::vector<std::string> paths;  // absolute
  std::string nonce;
  using Fields = FieldList<Field<1, &SeeMessage::paths>, Field<2, &SeeMessage::nonce>>;
};

struct SeenMessage {
  static constexpr TransferKind kKind = TransferKind::kSeen;
  std::vector<uint32_t> seen;  // positions in SeeMessage::paths
  using Fields = FieldList<Field<1, &SeenMessage::seen>>;
};

template <>
inline constexpr auto kFieldsOf<ProjectFile> =
    FieldList<Field<1, &ProjectFile::path>, Field<2, &ProjectFile::bytes>, Field<3, &ProjectFile::executable>,
              Field<4, &ProjectFile::link_to>, Field<5, &ProjectFile::empty_folder>>();

// A file of a tree with its contents' hash.
struct TreeFile {
  ProjectFile file;
  std::string digest;  // SHA-256, kDigestBytes; of a link or an empty folder: DigestBesideFiles
  using Fields = FieldList<Field<1, &TreeFile::file>, Field<2, &TreeFile::digest>>;
};

struct FilesMessage {
  static constexpr TransferKind kKind = TransferKind::kFiles;
  std::vector<TreeFile> files;
  using Fields = FieldList<Field<1, &FilesMessage::files>>;
};

struct AssembleMessage {
  static constexpr TransferKind kKind = TransferKind::kAssemble;
  std::string job;   // letters, digits and '-'
  std::string hash;  // of the tree
  using Fields = FieldList<Field<1, &AssembleMessage::job>, Field<2, &AssembleMessage::hash>>;
};

struct MissingMessage {
  static constexpr TransferKind kKind = TransferKind::kMissing;
  std::vector<uint32_t> files;  // their positions, one for each content
  bool last = false;
  using Fields = FieldList<Field<1, &MissingMessage::files>, Field<2, &MissingMessage::last>>;
};

struct ContentsMessage {
  static constexpr TransferKind kKind = TransferKind::kContents;
  std::string bytes;
  using Fields = FieldList<Field<1, &ContentsMessage::bytes>>;
};

struct TakenMessage {
  static constexpr TransferKind kKind = TransferKind::kTaken;
  uint64_t bytes = 0;  // of all frames so far, and of the greeting
  using Fields = FieldList<Field<1, &TakenMessage::bytes>>;
};

struct DoneMessage {
  static constexpr TransferKind kKind = TransferKind::kDone;
  std::string work;  // the folder to work in, absolute
  using Fields = FieldList<Field<1, &DoneMessage::work>>;
};

// A folder for what the tasks write, which stays there; made if it isn't there.
struct MakeOutputMessage {
  static constexpr TransferKind kKind = TransferKind::kMakeOutput;
  std::string name;  // "home-3f0c/4": parts of letters, digits, '-', '_' and '.'
  // Unless `next` is empty, the folder is one to go on in: it must have one of these marks, and gets `next` as its
  // mark.
  std::vector<std::string> before;
  std::string next;
  bool anew = false;  // whatever mark it has
  using Fields = FieldList<Field<1, &MakeOutputMessage::name>, Field<2, &MakeOutputMessage::before>,
                           Field<3, &MakeOutputMessage::next>, Field<4, &MakeOutputMessage::anew>>;
};

struct OutputMessage {
  static constexpr TransferKind kKind = TransferKind::kOutput;
  std::string path;    // absolute
  bool other = false;  // it has none of the marks, and keeps what it has
  using Fields = FieldList<Field<1, &OutputMessage::path>, Field<2, &OutputMessage::other>>;
};

struct FailedMessage {
  static constexpr TransferKind kKind = TransferKind::kFailed;
  std::string why;
  using Fields = FieldList<Field<1, &FailedMessage::why>>;
};

struct TransferFrame {
  TransferKind kind = TransferKind::kFailed;
  std::string body;
};

// Returns the frame of a message's bytes.
std::string TransferFrameOf(TransferKind kind, const std::string& body);

// Cuts what comes from the other side into frames.
class TransferFrames {
 public:
  void Add(std::string_view bytes) { bytes_ += bytes; }
  // Returns nullopt if no whole frame is there. InvalidArgument: another program, or another version, talks.
  absl::StatusOr<std::optional<TransferFrame>> Next();
  // Adds the bytes and gives each whole frame to `take`, whose first error ends it, as does one of Next.
  [[nodiscard]] absl::Status TakeAll(std::string_view bytes,
                                     absl::FunctionRef<absl::Status(const TransferFrame&)> take);
  // Returns the frame that tells how much has been taken, "" if that isn't due.
  std::string Told();

 private:
  std::string bytes_;
  bool greeted_ = false;
  uint64_t taken_ = 0;  // bytes of the frames that Next has returned, and of the greeting
  uint64_t told_ = 0;   // of these
};

// Returns the frames that name the missing files, by their positions.
std::string MissingFrames(const std::deque<uint32_t>& missing);

// InvalidArgument unless the list is one that a tree can have: relative paths in their order without "." and "..", none
// of them below a file or a link, so that nothing written by it leads out of its folder.
[[nodiscard]] absl::Status CheckTreeFiles(const std::vector<TreeFile>& files);

}  // namespace muster
