// Brings the index up to what the experiments' files say (docs/experiments/state.md): what other hosts have written,
// and what a process wrote that died before the index had it. Internal to the registry. Not thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {

class IndexRefresh {
 public:
  // Borrows all three, which must outlive it.
  IndexRefresh(SqliteDatabase& database, const Home& home, const MachineId& machine)
      : database_(database), home_(home), machine_(machine) {}

  // Looks for new and vanished experiments, and at those that haven't ended. Writes only if there is something new. An
  // experiment whose files can't be read is passed over, and said on stderr once.
  [[nodiscard]] absl::Status All() { return Several(/*ended_too=*/true); }
  // Looks at those that haven't ended, as far as that is known, and at no folders of others.
  [[nodiscard]] absl::Status OnlyOpen() { return Several(/*ended_too=*/false); }
  // Looks at one experiment and its open runs only; `run` (not 0): only at it. Within a transaction or outside of any.
  [[nodiscard]] absl::Status One(int64_t number, int run = 0);

 private:
  [[nodiscard]] absl::Status Several(bool ended_too);
  absl::StatusOr<bool> IsBehind(int64_t number, int run);
  [[nodiscard]] absl::Status Absorb(int64_t number, int run);
  [[nodiscard]] absl::Status AbsorbExperiment(int64_t number);
  [[nodiscard]] absl::Status AbsorbRecords(const ExperimentId& id, uint64_t from);

  SqliteDatabase& database_;
  const Home& home_;
  const MachineId& machine_;
};

}  // namespace muster
