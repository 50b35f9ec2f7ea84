// Where the bulk of an answer is written: memory that the client reads itself, if its connection has such, so that it
// isn't copied once more; else a buffer of the pool. Borrows the first from the responder until that answers.
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
  BufferPool::Handle buffer;  // null: not of the pool
};

}  // namespace muster
