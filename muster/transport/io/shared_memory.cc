#include "muster/transport/io/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr char kFileMagic[8] = {'M', 'U', 'S', 'T', 'S', 'H', 'M', '1'};
constexpr uint64_t kMostRingBytes = uint64_t{1} << 30;
constexpr uint64_t kMostAreaBytes = uint64_t{64} << 30;

absl::Status NoMemory(const char* what) {
  return absl::UnavailableError(absl::StrCat("no shared memory: ", what, ": ", std::strerror(errno)));
}

// A file that grows beyond this limit sends a signal that kills the process.
bool MayHave(uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes;
}

}  // namespace

// The header in the memory. Both sides write the fields after the nonce.
struct SharedMemory::Header {
  char magic[8];
  uint64_t ring_bytes;
  uint64_t area_bytes;
  uint64_t zero;
  HandshakeNonce nonce;
  alignas(128) std::atomic<uint32_t> client_sleeps;
  alignas(64) std::atomic<uint32_t> server_sleeps;
  alignas(64) std::atomic<uint64_t> to_server_written;
  alignas(64) std::atomic<uint64_t> to_server_read;
  alignas(64) std::atomic<uint64_t> to_client_written;
  alignas(64) std::atomic<uint64_t> to_client_read;
};

uint64_t SharedMemory::Sizes::total() const { return kShmPage + 2 * ring_bytes + 2 * area_bytes; }

absl::StatusOr<SharedMemory::Made> SharedMemory::Make(const HandshakeNonce& nonce, const SharedMemoryOptions& options) {
  static_assert(offsetof(Header, client_sleeps) == 128 && offsetof(Header, to_client_read) == 448);
  static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);
  const Sizes sizes{options.ring_bytes, options.area_bytes};
  MUSTER_CHECK(std::has_single_bit(sizes.ring_bytes) && sizes.ring_bytes >= kShmPage &&
               sizes.ring_bytes <= kMostRingBytes);
  MUSTER_CHECK(sizes.area_bytes % kShmPage == 0 && sizes.area_bytes <= kMostAreaBytes);
  if (!MayHave(sizes.total())) {
    errno = EFBIG;
    return NoMemory("the limit of file sizes");
  }
  Socket fd(memfd_create("muster-connection", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return NoMemory("memfd_create");
  if (ftruncate(fd.fd(), static_cast<off_t>(sizes.total())) != 0) return NoMemory("ftruncate");
  if (fcntl(fd.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return NoMemory("F_ADD_SEALS");
  ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory, Map(fd.fd(), sizes));
  Header& header = memory->header();
  std::memcpy(header.magic, kFileMagic, sizeof kFileMagic);
  header.ring_bytes = sizes.ring_bytes;
  header.area_bytes = sizes.area_bytes;
  header.nonce = nonce;
  return Made{std::move(memory), std::move(fd)};
}

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Open(int fd, const HandshakeNonce& nonce) {
  // Checks the seals first: the length that is read afterwards then stays true.
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat file {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &file) != 0) {
    return absl::FailedPreconditionError("refusing shared memory without F_SEAL_SHRINK: the sender could truncate it");
  }
  std::byte bytes[64];  // the header's constant part, read once
  if (pread(fd, bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes) ||
      std::memcmp(bytes, kFileMagic, sizeof kFileMagic) != 0 ||
      std::memcmp(bytes + offsetof(Header, nonce), nonce.data(), nonce.size()) != 0) {
    return absl::FailedPreconditionError("refusing shared memory whose header doesn't belong to this connection");
  }
  Sizes sizes;
  std::memcpy(&sizes.ring_bytes, bytes + offsetof(Header, ring_bytes), sizeof sizes.ring_bytes);
  std::memcpy(&sizes.area_bytes, bytes + offsetof(Header, area_bytes), sizeof sizes.area_bytes);
  if (!std::has_single_bit(sizes.ring_bytes) || sizes.ring_bytes < kShmPage || sizes.ring_bytes > kMostRingBytes ||
      sizes.area_bytes % kShmPage != 0 || sizes.area_bytes > kMostAreaBytes ||
      static_cast<uint64_t>(file.st_size) != sizes.total()) {
    return absl::FailedPreconditionError("refusing shared memory whose sizes differ from its header's");
  }
  return Map(fd, sizes);
}

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Map(int fd, Sizes sizes) {
  void* base = mmap(nullptr, sizes.total(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return NoMemory("mmap");
  // A core dump would write this memory, and a forked child must not have it.
  madvise(base, sizes.total(), MADV_DONTDUMP);
  madvise(base, sizes.total(), MADV_DONTFORK);
  return std::shared_ptr<SharedMemory>(new SharedMemory(static_cast<std::byte*>(base), sizes));
}

SharedMemory::~SharedMemory() { munmap(base_, sizes_.total()); }

SharedMemory::Header& SharedMemory::header() const { return *reinterpret_cast<Header*>(base_); }

std::atomic<uint32_t>& SharedMemory::sleep(Side side) const {
  return side == Side::kClient ? header().client_sleeps : header().server_sleeps;
}

SharedMemory::Ring SharedMemory::ring_to(Side side) const {
  std::byte* const first = base_ + kShmPage;
  if (side == Side::kServer) {
    return {&header().to_server_written, &header().to_server_read, {first, sizes_.ring_bytes}};
  }
  return {&header().to_client_written, &header().to_client_read, {first + sizes_.ring_bytes, sizes_.ring_bytes}};
}

MutableByteSpan SharedMemory::area_to(Side side) const {
  std::byte* const first = base_ + kShmPage + 2 * sizes_.ring_bytes;
  return {side == Side::kServer ? first : first + sizes_.area_bytes, sizes_.area_bytes};
}

}  // namespace muster
