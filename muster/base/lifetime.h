// Tells callbacks that may outlive an object whether it is still there: a member of the object, whose tokens go along
// with what is posted to an event loop or handed to another thread.
//
//   loop_.Post(lifetime_.Guard([this] { Look(); }));
//
// A token may be copied and dropped on any thread, but is asked on the one thread on which the object lives and dies.
#pragma once

#include <memory>
#include <utility>

namespace muster {

class Lifetime {
 public:
  class Token {
   public:
    bool alive() const { return *alive_; }

   private:
    friend Lifetime;
    explicit Token(std::shared_ptr<const bool> alive) : alive_(std::move(alive)) {}
    std::shared_ptr<const bool> alive_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() { End(); }

  // Ends it before the members of the object are destroyed, for a destructor that calls others.
  void End() { *alive_ = false; }

  Token token() const { return Token(alive_); }

  // A callback that does nothing once the object is gone.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return [token = token(), callback = std::move(callback)]() mutable {
      if (token.alive()) callback();
    };
  }

 private:
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster
