// A RequestHandler for tests: the request's method decides what it does, and it records every call. Lives on its
// listener's loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/bytes.h"
#include "muster/transport/listener.h"

namespace muster {

// Memory in pieces of uneven sizes: 1, 4, 7, … bytes, and the rest.
class UnevenMemory final : public BulkTarget {
 public:
  explicit UnevenMemory(size_t bytes) : bytes_(bytes) {
    size_t at = 0;
    for (size_t n = 1; at < bytes; n += 3) {
      const size_t piece = segments_.size() < 8 ? std::min(n, bytes - at) : bytes - at;
      segments_.push_back(MutableByteSpan(bytes_).subspan(at, piece));
      at += piece;
    }
  }
  const MutableSegments& segments() const override { return segments_; }
  Segments readable() const { return Segments(segments_.begin(), segments_.end()); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  MutableSegments segments_;
};

// Returns bytes that vary with position and seed.
inline std::vector<std::byte> Pattern(size_t bytes, uint64_t seed = 1) {
  std::vector<std::byte> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<std::byte>((i + seed) * 2654435761u >> 13);
  return pattern;
}

class ScriptedHandler final : public RequestHandler {
 public:
  enum Method : uint16_t {
    kEcho = 1,    // answers with the same control and bulk
    kDefer,       // keeps the responder in `deferred`
    kDrop,        // drops the responder
    kRefuseBulk,  // PrepareBulk fails with NotFound
    kFail,        // answers FailedPrecondition
    kPattern,     // answers with Pattern(number in control)
    kWrongSize,   // PrepareBulk hands out one byte less than needed
  };

  void OnConnect(ConnectionId connection, const std::string& peer) override {
    events.push_back("connect");
    connections.push_back(connection);
    peers.push_back(peer);
  }
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override {
    events.push_back(absl::StrCat("prepare ", request.bulk_bytes));
    if (request.method == kRefuseBulk) return absl::NotFoundError("no variable of that name");
    return std::make_unique<Target>(*this, request.bulk_bytes - (request.method == kWrongSize ? 1 : 0));
  }
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    events.push_back(absl::StrCat("handle ", request.method));
    controls.push_back(request.control);
    last_deadline = request.deadline;
    switch (request.method) {
      case kEcho:
        Echo(request, std::move(bulk), std::move(responder));
        break;
      case kDefer:
        deferred.push_back(std::move(responder));
        break;
      case kFail:
        responder.Fail(absl::FailedPreconditionError("not initialised"));
        break;
      case kPattern:
        SendPattern(request.control, std::move(responder));
        break;
      default:
        break;
    }
  }
  void OnDisconnect(ConnectionId) override { events.push_back("disconnect"); }

  size_t Count(const std::string& event) const { return std::count(events.begin(), events.end(), event); }

  std::vector<std::string> events;
  std::vector<ConnectionId> connections;
  std::vector<std::string> peers;
  std::vector<std::string> controls;
  std::vector<Responder> deferred;
  absl::Time last_deadline;
  int targets = 0;        // existing targets
  size_t kept_alive = 0;  // replies whose bulk is still held
  size_t most_kept_alive = 0;

 private:
  class Target final : public BulkTarget {
   public:
    Target(ScriptedHandler& handler, size_t bytes) : handler_(handler), memory_(std::make_shared<UnevenMemory>(bytes)) {
      ++handler_.targets;
    }
    ~Target() override { --handler_.targets; }
    const MutableSegments& segments() const override { return memory_->segments(); }
    const std::shared_ptr<UnevenMemory>& memory() const { return memory_; }

   private:
    ScriptedHandler& handler_;
    const std::shared_ptr<UnevenMemory> memory_;
  };

  void Echo(const IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) {
    if (bulk == nullptr) {
      responder.Send(request.control);
      return;
    }
    const std::shared_ptr<UnevenMemory> memory = static_cast<Target&>(*bulk).memory();
    responder.Send(request.control, memory->readable(), memory);
  }

  void SendPattern(const std::string& control, Responder responder) {
    size_t bytes = 0;
    if (!absl::SimpleAtoi(control, &bytes)) return;
    ++kept_alive;
    most_kept_alive = std::max(most_kept_alive, kept_alive);
    std::shared_ptr<std::vector<std::byte>> pattern(new std::vector<std::byte>(Pattern(bytes)),
                                                    [this](std::vector<std::byte>* old) {
                                                      --kept_alive;
                                                      std::default_delete<std::vector<std::byte>>()(old);
                                                    });
    responder.Send("pattern", {ByteSpan(*pattern)}, pattern);
  }
};

}  // namespace muster
