// The memory for an answer's bulk: memory that the client reads itself if its connection has such, which saves a copy;
// else a buffer of the pool. Borrows the client's memory from the responder until the responder answers.
#pragma once

#include "muster/base/bytes.h"
#include "muster/store/service/buffer_pool.h"
#include "muster/transport/listener.h"

namespace muster {

struct AnswerMemory {
  AnswerMemory(Responder& responder, BufferPool& buffers, size_t size) : bytes(responder.Reserve(size)) {
    if (!bytes.empty()) return;
    buffer = buffers.Take(size);
    bytes = buffer->first(size);
  }

  MutableByteSpan bytes;
  BufferPool::Handle buffer;  // null: `bytes` isn't from the pool
};

}  // namespace muster
