// Brings the index up to what the experiments' files say (docs/experiments/state.md): what other hosts have written,
// and what a process wrote that died before the index had it. Internal to the registry. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

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

  // What a change finds before it makes a folder for an experiment.
  struct Folders {
    int64_t time = 0;   // when names were last added or removed, in ns; 0: experiments/ isn't there yet
    int64_t links = 2;  // two, and one for each folder; 1: the file system doesn't count them
  };
  // Within a transaction, before it. nullopt: the index may not know all folders.
  absl::StatusOr<std::optional<Folders>> KnownFolders();
  // In the same transaction: notes that the index knows all folders with that experiment's, which is new, unless
  // another host may have made or removed one meanwhile. So the next command needn't list them. For a file system of
  // this host.
  [[nodiscard]] absl::Status NoteOneMore(const Folders& before, int64_t number);

 private:
  [[nodiscard]] absl::Status Several(bool ended_too);
  // Returns whether whatever changes a folder from now on will give it another time than this, which it has.
  bool IsSettled(int64_t time) const;
  absl::StatusOr<bool> IsBehind(int64_t number, int run);
  [[nodiscard]] absl::Status Absorb(int64_t number, int run);
  [[nodiscard]] absl::Status AbsorbExperiment(int64_t number);
  [[nodiscard]] absl::Status AbsorbRecords(const ExperimentId& id, uint64_t from);

  SqliteDatabase& database_;
  const Home& home_;
  const RegistryPlace& place_;
};

}  // namespace muster
