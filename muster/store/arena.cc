#include "muster/store/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kMaxSlots = 4;

template <typename T>
void Fill(MutableByteSpan bytes, T value) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) std::memcpy(bytes.data() + i, &value, sizeof(T));
}

}  // namespace

// Locks one stripe. A holder that died leaves the lock to the next one (EOWNERDEAD), who marks it usable again.
class Arena::StripeLock {
 public:
  explicit StripeLock(StripeHeader& stripe) : mutex_(&stripe.mutex) {
    const int error = pthread_mutex_lock(mutex_);
    if (error == EOWNERDEAD) {
      pthread_mutex_consistent(mutex_);
    } else {
      MUSTER_CHECK(error == 0);
    }
  }
  ~StripeLock() { pthread_mutex_unlock(mutex_); }
  StripeLock(const StripeLock&) = delete;
  StripeLock& operator=(const StripeLock&) = delete;

 private:
  pthread_mutex_t* const mutex_;
};

Arena::Arena(ArenaLayout layout, StoreModel model, std::unique_ptr<UpdateRule> rule, int fd, std::byte* base)
    : layout_(std::move(layout)), model_(std::move(model)), rule_(std::move(rule)), fd_(fd), base_(base) {}

Arena::~Arena() {
  munmap(base_, layout_.total_bytes());
  close(fd_);
}

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(const StoreModel& model, int num_clients) {
  ASSIGN_OR_RETURN(ArenaLayout layout, ArenaLayout::Make(model, num_clients));
  ASSIGN_OR_RETURN(auto rule, MakeUpdateRule(model.rule));
  MUSTER_CHECK(rule->slots().size() <= kMaxSlots);
  const auto no_memory = [&](const char* step) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for the model: ", layout.total_bytes() >> 20,
                                                     " MiB are needed for variables, slots and undo (", step, ": ",
                                                     std::strerror(errno), "); use more ps or a smaller model"));
  };
  const int fd = memfd_create("muster-arena", MFD_CLOEXEC);
  if (fd < 0) return no_memory("memfd_create");
  if (ftruncate(fd, static_cast<off_t>(layout.total_bytes())) != 0) {
    const absl::Status status = no_memory("ftruncate");
    close(fd);
    return status;
  }
  void* base = mmap(nullptr, layout.total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    const absl::Status status = no_memory("mmap");
    close(fd);
    return status;
  }
  auto arena = std::unique_ptr<Arena>(new Arena(layout, model, std::move(rule), fd, static_cast<std::byte*>(base)));
  arena->header() = {.magic = kArenaMagic,
                     .version = kArenaVersion,
                     .num_clients = static_cast<uint32_t>(num_clients),
                     .layout_hash = layout.hash(),
                     .total_bytes = layout.total_bytes()};
  arena->InitializeStripes();
  arena->InitializeSlots();
  return arena;
}

void Arena::InitializeStripes() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (int64_t i = 0; i < layout_.num_stripes(); ++i) pthread_mutex_init(&stripe(i).mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void Arena::InitializeSlots() {
  for (size_t i = 0; i < layout_.slices().size(); ++i) {
    const DType dtype = model_.variable(model_.slices[i]).dtype;
    for (size_t slot = 0; slot < layout_.slices()[i].slot_offsets.size(); ++slot) {
      const double initial = rule_->slots()[slot].initial_value;
      if (initial == 0) continue;  // memfd pages are zero
      if (dtype == DType::kFloat64) {
        Fill(RawSlot(i, slot), initial);
      } else {
        Fill(RawSlot(i, slot), static_cast<float>(initial));
      }
    }
  }
}

MutableByteSpan Arena::RawValue(int slice) {
  return {base_ + layout_.slices()[slice].value_offset, layout_.slices()[slice].bytes};
}

MutableByteSpan Arena::RawSlot(int slice, int slot) {
  return {base_ + layout_.slices()[slice].slot_offsets[slot], layout_.slices()[slice].bytes};
}

void Arena::Apply(int slice_index, const Push& push, ByteSpan bytes, MutableByteSpan pulled) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  const VariableSpec& variable = model_.variable(model_.slices[slice_index]);
  MUSTER_CHECK(bytes.size() == slice.bytes);
  const size_t stripe_bytes = kStripeElements * slice.element_size;
  for (int64_t i = 0; i < slice.num_stripes; ++i) {
    const size_t from = i * stripe_bytes;
    const size_t count = std::min<size_t>(stripe_bytes, slice.bytes - from);
    const MutableByteSpan value = RawValue(slice_index).subspan(from, count);
    StripeHeader& head = stripe(slice.first_stripe + i);
    StripeLock lock(head);
    uint64_t& last_sequence = head.last_sequence()[push.client];
    if (last_sequence < push.sequence) {
      if (variable.kind == VariableKind::kTrainable) {
        std::array<MutableByteSpan, kMaxSlots> slots;
        const size_t num_slots = slice.slot_offsets.size();
        for (size_t s = 0; s < num_slots; ++s) slots[s] = RawSlot(slice_index, s).subspan(from, count);
        rule_->Apply(variable.dtype, value, std::span(slots).first(num_slots), bytes.subspan(from, count),
                     {.learning_rate = push.learning_rate, .t = head.t + 1});
        ++head.t;
      } else {
        std::memcpy(value.data(), bytes.data() + from, count);
      }
      ++head.updates;
      last_sequence = push.sequence;
    }
    if (!pulled.empty()) std::memcpy(pulled.data() + from, value.data(), count);
  }
}

void Arena::Read(int slice_index, MutableByteSpan into) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  const size_t stripe_bytes = kStripeElements * slice.element_size;
  for (int64_t i = 0; i < slice.num_stripes; ++i) {
    const size_t from = i * stripe_bytes;
    StripeLock lock(stripe(slice.first_stripe + i));
    std::memcpy(into.data() + from, RawValue(slice_index).data() + from,
                std::min<size_t>(stripe_bytes, slice.bytes - from));
  }
}

void Arena::ReadSlot(int slice_index, int slot, MutableByteSpan into) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  const size_t stripe_bytes = kStripeElements * slice.element_size;
  for (int64_t i = 0; i < slice.num_stripes; ++i) {
    const size_t from = i * stripe_bytes;
    StripeLock lock(stripe(slice.first_stripe + i));
    std::memcpy(into.data() + from, RawSlot(slice_index, slot).data() + from,
                std::min<size_t>(stripe_bytes, slice.bytes - from));
  }
}

void Arena::SetSteps(const std::vector<uint64_t>& steps) {
  for (int64_t i = 0; i < layout_.num_stripes(); ++i) stripe(i).t = steps[i];
}

std::vector<uint64_t> Arena::ReadSteps() {
  std::vector<uint64_t> steps(layout_.num_stripes());
  for (int64_t i = 0; i < layout_.num_stripes(); ++i) {
    StripeLock lock(stripe(i));
    steps[i] = stripe(i).t;
  }
  return steps;
}

}  // namespace muster
