// A file of records that one process at a time appends to and any number read, on every host that sees it
// (docs/experiments/state.md). A record is a text without line breaks; each line has its length and checksum, so a
// reader stops before one that isn't whole. Thread-safe. Errors carry the path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/registry/files/durability.h"

namespace muster {

struct ReadRecords {
  std::vector<std::string> records;
  uint64_t end = 0;  // behind the last of them, where the next is appended
};
// Reads the whole records from `offset` on; none if the file doesn't exist or is shorter.
absl::StatusOr<ReadRecords> ReadRecordsFrom(const std::string& path, uint64_t offset);

// Appends a record at `end`, which ReadRecordsFrom has returned, and cuts off what stands behind it: a line that its
// writer died in. Makes the file (for its owner only) if it is missing. Returns the new end. ResourceExhausted: the
// disk is full, and the file is as before. PermissionDenied: this user may not write it.
absl::StatusOr<uint64_t> AppendRecord(const std::string& path, uint64_t end, std::string_view record,
                                      Durability durability);

// Takes back what was appended behind `end`, as far as that can be done.
void TakeRecordBack(const std::string& path, uint64_t end);

// Writes a file beside it and renames that: a reader sees the old text or the new one. ResourceExhausted,
// PermissionDenied.
[[nodiscard]] absl::Status ReplaceFile(const std::string& path, std::string_view text, Durability durability);

// Returns a text that changes when another file takes the name, or the file is written; "" if there is none. One that
// can't be looked at has a text of its own.
std::string SignatureOf(const std::string& path);

// Returns how long ago the file was written, by the clock of its file system, which is asked by a file made beside it;
// nullopt: there is none, or none can be made.
std::optional<absl::Duration> AgeOfFile(const std::string& path);

}  // namespace muster
