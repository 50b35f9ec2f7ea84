// Brings up an agent on one host: goes the way there, copies muster if the host doesn't have it, and hands over the
// stream once the agent speaks. Dials again where the way says that this helps. Single-threaded, on an FdLoop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/retry_pause.h"
#include "muster/launch/engines/contact/contact_way.h"
#include "muster/launch/engines/contact/first_contact.h"
#include "muster/launch/system/elf_needs.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/piped_program.h"

namespace muster {

// An agent's stream: what is read from the program's stdout belongs to the agent, and so does what is written to its
// stdin.
struct ContactStream {
  PipedProgram program;
  std::string read_already;  // the first bytes of the agent
  std::string banner;        // what the host's shell printed before; for the user if something goes wrong
};

struct ContactOptions {
  std::shared_ptr<const ContactWay> way;     // must be set
  std::vector<std::string> environment;      // of the way's program, "NAME=VALUE"
  std::string folder = "";                   // in which that runs; empty: this process's
  std::string job;                           // letters, digits and '-'
  absl::Duration grace = absl::Seconds(30);  // of the agent, in whole seconds
  MusterFile muster;
  std::string muster_path;                     // the file to copy
  ElfNeeds muster_needs;                       // of that file: compared with the host before it is copied
  absl::Duration patience = absl::Minutes(2);  // for all of it, dialling again included
};

class HostContact {
 public:
  // Called once, from the loop: the stream, or why there is none, in a sentence that begins with the host.
  using Done = absl::AnyInvocable<void(absl::StatusOr<ContactStream> stream)>;

  // Begins at once. Borrows `options`, `loop` and `clock`, which must outlive it.
  HostContact(std::string host, const ContactOptions& options, FdLoop& loop, const Clock& clock, Done done);
  ~HostContact();
  HostContact(const HostContact&) = delete;
  HostContact& operator=(const HostContact&) = delete;

  const std::string& host() const { return host_; }
  bool done() const { return done_ == nullptr; }
  // What the way's program or the host has said last, or what is done there.
  std::string last_words() const;
  // When OnTime has something to do; InfiniteFuture if never.
  absl::Time deadline() const;
  void OnTime();

 private:
  void Dial();
  void OnOutput();
  void OnErrors();
  void OnEnd();
  void OnAnswer(std::string_view rest);
  void BeginSending();
  // Writes what the pipe takes of the first line and of the file.
  void Write();
  void Redial();
  void Finish(absl::StatusOr<ContactStream> stream);
  void Forget();
  std::string ItsLastWords() const;

  // Constant after construction.
  const std::string host_;
  const ContactOptions& options_;
  FdLoop& loop_;
  const Clock& clock_;

  Done done_;
  absl::Time give_up_;  // moves on while the file is taken
  std::optional<PipedProgram> program_;
  FirstContact contact_;
  std::string errors_;
  std::string dropped_;   // the last of the dial before
  std::string outgoing_;  // not written yet
  int file_ = -1;         // being copied
  RetryPause pause_;
  absl::Time redial_at_ = absl::InfiniteFuture();
};

}  // namespace muster
