// A channel that passes every call on to another one: a test or a simulation derives from it and overrides what matters
// to it. And a transport whose channels are wrapped in such ones.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "muster/transport/transport.h"

namespace muster {

class ForwardingChannel : public Channel {
 public:
  explicit ForwardingChannel(std::unique_ptr<Channel> inner) : inner_(std::move(inner)) {}

  CallId Call(const Request& request, ReplyCallback done) override { return inner_->Call(request, std::move(done)); }
  void Cancel(CallId call) override { inner_->Cancel(call); }
  const std::string& peer() const override { return inner_->peer(); }
  std::string trouble() const override { return inner_->trouble(); }
  Stats stats() const override { return inner_->stats(); }

 protected:
  std::unique_ptr<Channel> inner_;
};

class WrappingTransport final : public Transport {
 public:
  using Wrap = std::function<std::unique_ptr<Channel>(std::unique_ptr<Channel>)>;

  // `inner` must outlive it.
  WrappingTransport(Transport& inner, Wrap wrap) : inner_(inner), wrap_(std::move(wrap)) {}

  EventLoop& loop() override { return inner_.loop(); }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address, RequestHandler& handler) override {
    return inner_.Listen(address, handler);
  }
  std::unique_ptr<Channel> Connect(const std::string& address) override { return wrap_(inner_.Connect(address)); }

 private:
  Transport& inner_;
  const Wrap wrap_;
};

}  // namespace muster
