#include "muster/base/lifetime.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace muster::lifetime_test {
namespace {

TEST(LifetimeTest, AGuardedCallbackRunsAsLongAsTheObjectLives) {
  std::optional<Lifetime> lifetime(std::in_place);
  int calls = 0;
  auto callback = lifetime->Guard([&, owned = std::make_unique<int>(2)] { calls += *owned; });
  callback();
  callback();
  EXPECT_EQ(calls, 4);
  lifetime.reset();
  callback();
  EXPECT_EQ(calls, 4);
}

TEST(LifetimeTest, ATokenOutlivesTheObject) {
  std::optional<Lifetime> lifetime(std::in_place);
  const Lifetime::Token token = lifetime->token();
  EXPECT_TRUE(token.alive());
  lifetime.reset();
  EXPECT_FALSE(token.alive());
}

TEST(LifetimeTest, EndsBeforeItsObjectIfItIsTold) {
  Lifetime lifetime;
  const Lifetime::Token token = lifetime.token();
  lifetime.End();
  EXPECT_FALSE(token.alive());
  EXPECT_FALSE(lifetime.token().alive());
}

// A callback that destroys the object it belongs to must find that out from its own copy.
TEST(LifetimeTest, ACallbackMayDestroyTheObject) {
  auto lifetime = std::make_unique<Lifetime>();
  bool seen = true;
  lifetime->Guard([&, token = lifetime->token()] {
    lifetime.reset();
    seen = token.alive();
  })();
  EXPECT_FALSE(seen);
}

}  // namespace
}  // namespace muster::lifetime_test
