// The engine for hosts to which there is a way (contact_way.h): dials a few at a time, copies muster to a host that
// doesn't have it, starts the agent there and gives the stream. Used by the loop's thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/launch/engines/contact/host_contact.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class ContactEngine final : public Engine {
 public:
  static constexpr size_t kAtOnce = 8;

  // `options.muster` and `muster_needs` are found by Start if they are empty. Borrows `loop` and `clock`.
  ContactEngine(ContactOptions options, FdLoop& loop, const Clock& clock);

  // NotFound or PermissionDenied: the file of muster can't be read.
  absl::Status Start(EngineEvents& events) override;
  void Connect(const std::string& host) override;
  std::string LastWords(const std::string& host) const override;
  absl::Time deadline() const override;
  void OnTime() override;

 private:
  void OnContact(const std::string& host, absl::StatusOr<ContactStream> stream);

  ContactOptions options_;  // constant after Start
  FdLoop& loop_;
  const Clock& clock_;

  EngineEvents* events_ = nullptr;  // from Start on
  std::deque<std::string> waiting_;
  std::vector<std::unique_ptr<HostContact>> contacts_;
};

}  // namespace muster
