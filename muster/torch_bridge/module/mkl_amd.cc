// Makes the MKL inside libtorch use its fast kernels on processors that aren't Intel's: training steps of a small
// perceptron gain a factor of 1.8 on AMD's Zen 5, 1.15 on Zen 4 (whose AVX-512 units are half as wide).
//
// Before choosing kernels MKL asks these two exported functions whether it runs on an Intel processor, and takes its
// slow path if not, whatever the processor can do. The program's own definitions win over those in libtorch, so they
// must be in the executable itself: this file is an object library, because a linker drops an archive member that
// nothing refers to. MKL still reads the processor's features itself, so a machine without AVX-512 or AVX2 isn't given
// such kernels.
//
// MUSTER_MKL_AMD=0 in the environment switches it off: the answer is then the processor's true vendor. `never` makes
// the answer no on any processor, so that a test has the slow kernels to compare with on an Intel processor, too. MKL
// asks while libtorch makes its first matrix product, possibly before main, when no configuration has been read yet;
// this is the one place outside the configuration loader that reads the environment. Thread-safe: nothing is written,
// and MKL keeps the answer itself.
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>

namespace {

bool IsGenuineIntel() {
  unsigned int highest = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &highest, &b, &c, &d) == 0) return false;
  char vendor[12];
  std::memcpy(vendor, &b, 4);
  std::memcpy(vendor + 4, &d, 4);
  std::memcpy(vendor + 8, &c, 4);
  return std::memcmp(vendor, "GenuineIntel", sizeof(vendor)) == 0;
}

int UseIntelKernels() {
  const char* value = std::getenv("MUSTER_MKL_AMD");
  if (value != nullptr && std::strcmp(value, "never") == 0) return 0;
  const bool off = value != nullptr && std::strcmp(value, "0") == 0;
  return !off || IsGenuineIntel() ? 1 : 0;
}

}  // namespace

extern "C" {
int mkl_serv_intel_cpu_true() { return UseIntelKernels(); }
int mkl_serv_intel_cpu() { return UseIntelKernels(); }
}
#endif
