// Brings the index up to what the experiments' files say (docs/experiments/state.md): what other hosts have written,
// and what a process wrote that died before the index had it. Internal to the registry. Not thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry_place.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {

class IndexRefresh {
 public:
  // Borrows all three, which must outlive it.
  IndexRefresh(SqliteDatabase& database, const Home& home, const RegistryPlace& place)
      : database_(database), home_(home), place_(place) {}

  // Looks for new and vanished experiments, and at those that haven't ended. Writes only if there is something new. An
  // experiment whose files can't be read is passed over, and said on stderr once.
  [[nodiscard]] absl::Status All() { return Several(/*ended_too=*/true); }
  // Looks at those that haven't ended, as far as that is known, and at no folders of others.
  [[nodiscard]] absl::Status OnlyOpen() { return Several(/*ended_too=*/false); }
  // Looks at one experiment and its open runs only; `run` (not 0): only at it. Within a transaction or outside of any.
  [[nodiscard]] absl::Status One(int64_t number, int run = 0);

 private:
  [[nodiscard]] absl::Status Several(bool ended_too);
  // Returns whether whatever changes a folder from now on will give it another time than this, which it had just now.
  bool IsSettled(int64_t time) const;
  // Returns whether its folder has no experiment.json, or isn't there.
  bool IsEmpty(int64_t number) const;
  absl::StatusOr<bool> IsBehind(int64_t number, int run);
  // Returns false if it was passed over.
  absl::StatusOr<bool> Absorb(int64_t number, int run);
  // Returns false if the file can't be used, which is said.
  absl::StatusOr<bool> AbsorbExperiment(int64_t number);
  [[nodiscard]] absl::Status AbsorbRecords(const ExperimentId& id, uint64_t from);

  SqliteDatabase& database_;
  const Home& home_;
  const RegistryPlace& place_;
};

}  // namespace muster
