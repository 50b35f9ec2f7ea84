// The connections of a listener that haven't passed the handshake yet. Anybody who reaches the port can open some, so
// they have a small pool of their own: when it is full, or one address has too many in it, an older one makes room for
// the newcomer. An honest client passes within milliseconds, so it isn't kept out by those who only wait. Plain data,
// no clock; not thread-safe. Internal to tcp/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"

namespace muster {

class StrangerPool {
 public:
  StrangerPool(size_t most, size_t most_per_address) : most_(most), most_per_address_(most_per_address) {}

  // Tells whether a stranger has sent its hello. Those that haven't go first.
  using HasGreeted = absl::FunctionRef<bool(uint64_t id)>;

  // Returns who has to go before a stranger from `address` may be added, nullopt: nobody. `full`: one has to go in any
  // case, if there is one.
  std::optional<uint64_t> WhoMakesRoom(const std::string& address, bool full, HasGreeted has_greeted) const;

  // `id` is higher than that of any earlier stranger.
  void Add(uint64_t id, std::string address);
  // False: it isn't there.
  bool Remove(uint64_t id);
  size_t size() const { return addresses_.size(); }

 private:
  // Returns the oldest one that hasn't greeted, else the oldest; of that address only, if it isn't null.
  std::optional<uint64_t> Oldest(const std::string* address, HasGreeted has_greeted) const;

  const size_t most_;
  const size_t most_per_address_;
  std::map<uint64_t, std::string> addresses_;  // by id: the oldest first
  std::map<std::string, size_t> counts_;       // by address
};

}  // namespace muster
