// Lets the command run with an older glibc than the one that it was linked with: gcc's std::random_device refers to a
// function that glibc has only since 2.36. A definition in the program itself is taken instead.
#include <sys/random.h>

#include <cstdint>

#include "muster/base/check.h"
#include "muster/base/os/uninterrupted.h"

extern "C" uint32_t arc4random() noexcept;  // <stdlib.h> declares it only where glibc has it

extern "C" uint32_t arc4random() noexcept {
  uint32_t random = 0;
  const ssize_t got = muster::Uninterrupted([&] { return getrandom(&random, sizeof random, 0); });
  MUSTER_CHECK(got == sizeof random);  // never fewer for so few
  return random;
}
