#include "muster/base/os/flush_denormals.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster {

#if defined(__x86_64__)

namespace {

// "Flush to zero" for results and "denormals are zero" for operands.
constexpr uint32_t kFlush = 0x8000 | 0x0040;

}  // namespace

void FlushDenormals() { _mm_setcsr(_mm_getcsr() | kFlush); }
bool FlushesDenormals() { return (_mm_getcsr() & kFlush) == kFlush; }

#elif defined(__aarch64__)

namespace {

constexpr uint64_t kFlush = uint64_t{1} << 24;  // FPCR.FZ: results and operands

uint64_t ControlRegister() {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}

}  // namespace

void FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(ControlRegister() | kFlush)); }
bool FlushesDenormals() { return (ControlRegister() & kFlush) != 0; }

#else

void FlushDenormals() {}
bool FlushesDenormals() { return false; }

#endif

}  // namespace muster
