// What an agent and its keeper say to each other over a Unix stream socket: a header, a protocol buffer, and
// descriptors beside them. Both ends are the same build of the same program, so only an end or a stop in the middle of
// a message is expected, not another's bytes. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/launch/backends/local/child.h"
#include "muster/launch/backends/local/task_parent.h"
#include "muster/transport/messages/fields.h"

namespace muster {

enum class KeeperKind : uint32_t {
  kReady = 1,     // keeper → agent, first
  kKeep = 2,      // KeepMessage; its descriptors
  kStart = 3,     // StartMessage; the control group's descriptor if there is one
  kStarted = 4,   // the answer: StartedMessage; pidfd, stdout, stderr and, if it takes input, stdin
  kAwait = 5,     // LabelMessage
  kEnded = 6,     // the answer: EndedMessage
  kForget = 7,    // LabelMessage
  kEndAt = 8,     // EndAtMessage
  kEnding = 9,    // the agent has asked the tasks to end, and will kill them
  kGoodbye = 10,  // nothing runs any more: the keeper may end
};

struct KeeperMessage {
  KeeperKind kind = KeeperKind::kReady;
  std::string body;
  std::vector<int> descriptors;  // the receiver's own; closed by exec
  bool whole = true;             // all descriptors that were sent have come: the receiver had numbers left for them
};

struct KeepMessage {
  std::vector<std::string> names;  // with no value and no descriptors: dropped
  std::vector<std::string> values;
  std::vector<uint32_t> descriptors;  // how many of the message's are each one's
  using Fields =
      FieldList<Field<1, &KeepMessage::names>, Field<2, &KeepMessage::values>, Field<3, &KeepMessage::descriptors>>;
};

struct MountMessage {
  std::string host;
  std::string path;
  bool writable = false;
  using Fields =
      FieldList<Field<1, &MountMessage::host>, Field<2, &MountMessage::path>, Field<3, &MountMessage::writable>>;
};

struct StartMessage {
  std::string label;
  std::string about;
  std::string memory;  // the thing that is its memory file; empty: none
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string directory;
  std::vector<MountMessage> mounts;
  int64_t umask = -1;  // -1: the keeper's
  bool takes_input = false;
  uint64_t memory_limit = 0;  // bytes; 0: none

  static StartMessage Of(const NewTask& task, const ChildSpec& spec);
  ChildSpec ToSpec() const;

  using Fields =
      FieldList<Field<1, &StartMessage::label>, Field<2, &StartMessage::about>, Field<3, &StartMessage::memory>,
                Field<4, &StartMessage::program>, Field<5, &StartMessage::arguments>,
                Field<6, &StartMessage::environment>, Field<7, &StartMessage::directory>,
                Field<8, &StartMessage::mounts>, Field<9, &StartMessage::umask>, Field<10, &StartMessage::takes_input>,
                Field<11, &StartMessage::memory_limit>>;
};

struct StartedMessage {
  int64_t pid = 0;  // 0: it didn't start
  uint32_t code = 0;
  std::string why;
  using Fields =
      FieldList<Field<1, &StartedMessage::pid>, Field<2, &StartedMessage::code>, Field<3, &StartedMessage::why>>;
};

struct LabelMessage {
  std::string label;
  using Fields = FieldList<Field<1, &LabelMessage::label>>;
};

struct EndedMessage {
  int64_t code = 0;
  int64_t signal = 0;
  using Fields = FieldList<Field<1, &EndedMessage::code>, Field<2, &EndedMessage::signal>>;
};

struct EndAtMessage {
  int64_t boot_nanoseconds = 0;  // of BootClock
  using Fields = FieldList<Field<1, &EndAtMessage::boot_nanoseconds>>;
};

// The name under which a task's memory file is kept.
std::string MemoryName(const TaskId& task);

// Blocks until the socket has taken all. Unavailable: the other end is gone.
[[nodiscard]] absl::Status SendToKeeper(int socket, KeeperKind kind, const std::string& body,
                                        const std::vector<int>& descriptors = {});

// Finds the messages in what comes over one socket.
class KeeperReader {
 public:
  KeeperReader() = default;
  ~KeeperReader();
  KeeperReader(const KeeperReader&) = delete;
  KeeperReader& operator=(const KeeperReader&) = delete;

  // Reads once what is there, or waits until something is. Returns false at the end of the stream: what has come of a
  // message that was cut off doesn't count.
  bool Read(int socket, bool wait);
  // Returns the next message that has come whole; the caller must close its descriptors.
  std::optional<KeeperMessage> Next();
  // Waits for it; nullopt at the end of the stream.
  std::optional<KeeperMessage> Await(int socket);

 private:
  std::string bytes_;
  std::deque<std::vector<int>> descriptors_;  // of each message that has some
};

}  // namespace muster
