// What a run needs in a job that shares no folder with its submitter, as one stream of bytes that is sent in pieces
// (docs/far_homes.md): made from files that nobody changes meanwhile, so another process can go on with it. Blocking;
// not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/registry/home.h"

namespace muster {

struct ParcelOrder {
  ExperimentId id;
  std::string job;        // as its engine names it
  std::string tree;       // hash of the code
  bool with_tree = true;  // the job hasn't got the code yet
};

class Parcel {
 public:
  // Reads all of it once, for its name. NotFound: the code, or the experiment, is gone.
  static absl::StatusOr<Parcel> Make(const Home& home, const ParcelOrder& order);

  const std::string& name() const { return name_; }  // 64 hexadecimal digits
  uint64_t size() const { return size_; }
  // Returns `most` bytes from `offset` on, or those that are left. DataLoss: a file isn't as it was.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t most) const;

 private:
  struct Piece {
    std::string text;  // unless there is
    std::string file;  // below folder
    std::string folder;
    uint64_t bytes = 0;
  };
  void Add(const std::string& text);
  void AddEntry(const std::string& path, const std::string& kind, const std::string& text);
  absl::Status AddRun(const Home& home, const ParcelOrder& order);
  absl::Status AddTree(const Home& home, const std::string& tree);
  absl::Status Seal();

  std::vector<Piece> pieces_;
  std::string name_;
  uint64_t size_ = 0;
};

// Sends it to the job, from where the job has it. OK also if the job has got one before. Errors are those of AskFar
// (Unavailable: the job can't be asked now; go on later) and of Parcel. Blocks until it is there.
[[nodiscard]] absl::Status SendParcel(const Home& home, JobEngine& engine, const ParcelOrder& order);

}  // namespace muster
