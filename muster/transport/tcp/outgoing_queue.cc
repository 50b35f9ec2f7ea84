#include "muster/transport/tcp/outgoing_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "muster/transport/little_endian.h"

namespace muster {

void OutgoingFrame::PutBeside(Extent where) {
  beside = true;
  extent = std::move(where);
  StoreLittleEndian(extent.offset(), place.data());
  StoreLittleEndian(uint8_t{1}, &header[kFrameBesideByte]);
}

uint64_t OutgoingQueue::FrameBytes(const OutgoingFrame& frame) { return HeadBytes(frame) + TotalBytes(frame.bulk); }

OutgoingFrame OutgoingQueue::NewFrame() {
  if (spare_.empty()) return {};
  OutgoingFrame frame = std::move(spare_.back());
  spare_.pop_back();
  return frame;
}

void OutgoingQueue::Reuse(OutgoingFrame frame) {
  constexpr size_t kMostSpare = 64;
  constexpr size_t kMostControl = 64 << 10;
  OutgoingFrame empty;
  if (frame.control.capacity() <= kMostControl) empty.control = std::move(frame.control);
  empty.bulk = std::move(frame.bulk);
  empty.control.clear();
  empty.bulk.clear();
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(empty));
}

void OutgoingQueue::Push(OutgoingFrame frame) {
  bytes_ += FrameBytes(frame);
  frames_.push_back(std::move(frame));
}

bool OutgoingQueue::Holds(uint64_t id) const {
  return std::any_of(frames_.begin() + first_, frames_.end(), [id](const auto& frame) { return frame.id == id; });
}

size_t OutgoingQueue::Gather(iovec* vectors, size_t most, size_t* bytes) const {
  size_t count = 0;
  *bytes = 0;
  auto add = [&](const void* data, size_t size) {
    if (size == 0) return;
    vectors[count++] = {const_cast<void*>(data), size};
    *bytes += size;
  };
  Cursor at = cursor_;
  for (size_t i = first_; i < frames_.size() && count < most; ++i, at = {}) {
    const OutgoingFrame& frame = frames_[i];
    if (frame.beside && !frame.extent) break;  // where its bulk goes isn't decided yet
    const size_t header = HeaderBytes(frame);
    const size_t control = header + frame.control.size();
    const bool head_was_out = at.head == HeadBytes(frame);
    if (at.head < header) {
      add(frame.header.data() + at.head, header - at.head);
      at.head = header;
    }
    if (count < most && at.head < control) {
      add(frame.control.data() + (at.head - header), control - at.head);
      at.head = control;
    }
    if (frame.extent && !head_was_out) {
      if (count < most) add(frame.place.data() + (at.head - control), frame.place.size() - (at.head - control));
      break;  // the bulk goes beside the stream
    }
    for (size_t s = at.segment; s < frame.bulk.size() && count < most; ++s, at.offset = 0) {
      add(frame.bulk[s].data() + at.offset, frame.bulk[s].size() - at.offset);
    }
    if (frame.extent) break;
  }
  return count;
}

void OutgoingQueue::Advance(size_t bytes, std::vector<OutgoingFrame>& done) {
  bytes_ -= bytes;
  while (first_ < frames_.size()) {
    OutgoingFrame& frame = frames_[first_];
    const size_t head = HeadBytes(frame);
    const size_t of_head = std::min(bytes, head - cursor_.head);
    cursor_.head += of_head;
    cursor_.sent += of_head;
    bytes -= of_head;
    if (cursor_.head < head) return;
    while (cursor_.segment < frame.bulk.size()) {
      const size_t n = std::min(bytes, frame.bulk[cursor_.segment].size() - cursor_.offset);
      cursor_.offset += n;
      cursor_.sent += n;
      bytes -= n;
      if (cursor_.offset < frame.bulk[cursor_.segment].size()) return;
      ++cursor_.segment;
      cursor_.offset = 0;
    }
    done.push_back(std::move(frame));
    ++first_;
    cursor_ = {};
    if (bytes == 0) break;
  }
  // Keeps the vector's memory. Sweeps out the finished frames once they are the larger part.
  if (first_ == frames_.size()) {
    frames_.clear();
    first_ = 0;
  } else if (first_ > 16 && first_ > frames_.size() / 2) {
    frames_.erase(frames_.begin(), frames_.begin() + first_);
    first_ = 0;
  }
}

OutgoingFrame* OutgoingQueue::Unplaced() {
  if (empty() || cursor_.sent > 0) return nullptr;
  OutgoingFrame& frame = frames_[first_];
  return frame.beside && !frame.extent ? &frame : nullptr;
}

void OutgoingQueue::Place(Extent extent) {
  OutgoingFrame& frame = frames_[first_];
  frame.beside = static_cast<bool>(extent);
  if (!frame.beside) return;
  frame.PutBeside(std::move(extent));
  bytes_ += frame.place.size();
}

OutgoingFrame* OutgoingQueue::Placing() {
  if (empty() || !frames_[first_].extent || cursor_.head < HeadBytes(frames_[first_])) return nullptr;
  return &frames_[first_];
}

uint64_t OutgoingQueue::PlacedBytes() const { return cursor_.sent - HeadBytes(frames_[first_]); }

bool OutgoingQueue::Withdraw(uint64_t id) {
  for (size_t i = first_; i < frames_.size(); ++i) {
    if (frames_[i].id != id) continue;
    if (i == first_ && cursor_.sent > 0) return false;
    bytes_ -= FrameBytes(frames_[i]);
    frames_.erase(frames_.begin() + i);
    return true;
  }
  return false;
}

std::vector<OutgoingFrame> OutgoingQueue::TakeUnsent() {
  const size_t begin = first_ + (cursor_.sent > 0 ? 1 : 0);
  std::vector<OutgoingFrame> unsent(std::make_move_iterator(frames_.begin() + begin),
                                    std::make_move_iterator(frames_.end()));
  frames_.resize(begin);
  for (const OutgoingFrame& frame : unsent) bytes_ -= FrameBytes(frame);
  return unsent;
}

void OutgoingQueue::Clear() {
  // Takes the frames out first: releasing what they keep alive may lead back here.
  std::vector<OutgoingFrame> frames = std::move(frames_);
  frames_.clear();
  first_ = 0;
  cursor_ = {};
  bytes_ = 0;
}

}  // namespace muster
