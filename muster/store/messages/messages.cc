#include "muster/store/messages/messages.h"

#include <array>
#include <type_traits>

#include "absl/status/status.h"
#include "protozero/pbf_reader.hpp"
#include "protozero/pbf_writer.hpp"

namespace muster {
namespace {

// The fields of each message and their numbers, said once: Writer and Reader below both walk through Fields(). Numbers
// are written to the wire: never renumber.
template <typename Archive>
void Fields(Archive& a, Stamp& m) {
  a(1, m.client);
  a(2, m.incarnation);
  a(3, m.sequence);
}
template <typename Archive>
void Fields(Archive& a, RowTable& m) {
  a(1, m.partition);
  a(2, m.initial.kind);
  a(3, m.initial.center);
  a(4, m.initial.spread);
  a(5, m.initial.seed);
}
template <typename Archive>
void Fields(Archive& a, VariableSpec& m) {
  a(1, m.name);
  a(2, m.dtype);
  a(3, m.shape);
  a(4, m.kind);
  a(5, m.table);
}
template <typename Archive>
void Fields(Archive& a, PlacedSlice& m) {
  a(1, m.variable);
  a(2, m.shard);
  a(3, m.num_shards);
  a(4, m.offset);
  a(5, m.shape);
  a(6, m.elements);
  a(7, m.bytes);
  a(8, m.ps);
  a(9, m.row_step);
}
template <typename Archive>
void Fields(Archive& a, ClipSpec& m) {
  a(1, m.kind);
  a(2, m.limit);
}
template <typename Archive>
void Fields(Archive& a, ScheduleSpec& m) {
  a(1, m.kind);
  a(2, m.decay_steps);
  a(3, m.decay_rate);
  a(4, m.end_learning_rate);
  a(5, m.power);
  a(6, m.cycle);
  a(7, m.alpha);
  a(8, m.warmup_steps);
  a(9, m.warmup_from);
}
template <typename Archive>
void Fields(Archive& a, RuleSpec& m) {
  a(1, m.kind);
  a(2, m.learning_rate);
  a(3, m.momentum);
  a(4, m.nesterov);
  a(5, m.beta1);
  a(6, m.beta2);
  a(7, m.epsilon);
  a(8, m.weight_decay);
  a(9, m.initial_accumulator);
  a(10, m.learning_rate_decay);
  a(11, m.rho);
  a(12, m.centered);
  a(13, m.learning_rate_power);
  a(14, m.l1);
  a(15, m.l2);
  a(16, m.clip);
  a(17, m.schedule);
}
template <typename Archive>
void Fields(Archive& a, GateSpec& m) {
  a(1, m.kind);
  a(2, m.replicas_to_aggregate);
  a(3, m.total_replicas);
  a(4, m.elastic);
}
template <typename Archive>
void Fields(Archive& a, ParameterGroup& m) {
  a(1, m.variables);
  a(2, m.rule);
}
template <typename Archive>
void Fields(Archive& a, OptimizerSpec& m) {
  a(1, m.rule);
  a(2, m.groups);
  a(3, m.non_finite);
}
template <typename Archive>
void Fields(Archive& a, StoreModel& m) {
  a(1, m.variables);
  a(2, m.slices);
  a(3, m.optimizer);
  a(8, m.gate);
  a(9, m.clock_limit);
  a(10, m.exchanges);
  a(11, m.ordered);
}
template <typename Archive>
void Fields(Archive& a, JoinRequest& m) {
  a(1, m.task);
  a(2, m.incarnation);
  a(3, m.chief);
  a(4, m.where);
}
template <typename Archive>
void Fields(Archive& a, JoinReply& m) {
  a(1, m.client);
  a(2, m.last_sequence);
  a(3, m.ready);
  a(4, m.ended);
  a(5, m.ps_incarnation);
  a(6, m.chief_epoch);
  a(7, m.global_step);
  a(8, m.generation);
}
template <typename Archive>
void Fields(Archive& a, InitializeRequest& m) {
  a(1, m.stamp);
  a(2, m.chief_epoch);
  a(3, m.model);
  a(4, m.with_slots);
  a(5, m.steps);
  a(6, m.global_step);
  a(7, m.minibatches);
  a(8, m.generation);
  a(9, m.with_rows);
  a(10, m.work);
}
template <typename Archive>
void Fields(Archive& a, AwaitReadyRequest& m) {
  a(1, m.stamp);
  a(2, m.model);
  a(3, m.generation);
}
template <typename Archive>
void Fields(Archive& a, AwaitReadyReply& m) {
  a(1, m.global_step);
  a(2, m.generation);
}
template <typename Archive>
void Fields(Archive& a, PushPullRequest& m) {
  a(1, m.stamp);
  a(2, m.pushed);
  a(3, m.pull);
  a(4, m.pulled_version);
  a(5, m.minibatches);
  a(6, m.generation);
  a(7, m.global_step);
  a(8, m.scales);
  a(10, m.contributes);
  a(11, m.local_step);
  a(12, m.clock);
  a(13, m.non_finite);
  a(20, m.update);
  a(21, m.with_pulled);
  a(22, m.compensation);
  a(23, m.exchange);
  a(24, m.staleness_scale);
  a(25, m.adaptive);
  a(30, m.pushed_as);
  a(31, m.pulled_as);
  a(40, m.part);
  a(41, m.ranges);
  a(42, m.earlier);
  a(50, m.work.from);
  a(51, m.work.through);
}
template <typename Archive>
void Fields(Archive& a, PushPullReply& m) {
  a(1, m.version);
  a(2, m.staleness);
  a(3, m.global_step);
  a(4, m.load);
  a(10, m.round);
  a(11, m.dropped);
  a(12, m.clock);
  a(20, m.incomplete);
}
template <typename Archive>
void Fields(Archive& a, HeartbeatRequest& m) {
  a(1, m.stamp);
}
template <typename Archive>
void Fields(Archive& a, DoneRequest& m) {
  a(1, m.stamp);
}
template <typename Archive>
void Fields(Archive& a, ShutdownRequest& m) {
  a(1, m.reason);
}
template <typename Archive>
void Fields(Archive& a, SavePartRequest& m) {
  a(1, m.stamp);
  a(2, m.chief_epoch);
  a(3, m.directory);
  a(4, m.save_id);
  a(5, m.file);
  a(6, m.hold);
}
template <typename Archive>
void Fields(Archive& a, SavePartReply& m) {
  a(1, m.bytes);
  a(2, m.crc32c);
}
template <typename Archive>
void Fields(Archive& a, ExportPartRequest& m) {
  a(1, m.stamp);
  a(2, m.hold);
}
template <typename Archive>
void Fields(Archive& a, ExportPartReply& m) {
  a(1, m.steps);
}
template <typename Archive>
void Fields(Archive& a, CommitCheckpointRequest& m) {
  a(1, m.stamp);
  a(2, m.chief_epoch);
  a(3, m.directory);
  a(4, m.manifest);
  a(5, m.keep);
  a(6, m.preserve_every_hours);
}
template <typename Archive>
void Fields(Archive& a, ClockReply& m) {
  a(1, m.nanos);
}
template <typename Archive>
void Fields(Archive& a, HoldRequest& m) {
  a(1, m.stamp);
  a(2, m.chief_epoch);
}
template <typename Archive>
void Fields(Archive& a, HoldReply& m) {
  a(1, m.begun);
  a(2, m.round);
  a(3, m.in_parts);
}
template <typename Archive>
void Fields(Archive& a, MarkRequest& m) {
  a(1, m.stamp);
  a(2, m.chief_epoch);
  a(3, m.hold);
  a(4, m.through);
  a(5, m.round);
  a(6, m.release);
  a(7, m.patient);
}
template <typename Archive>
void Fields(Archive& a, MarkReply& m) {
  a(1, m.global_step);
  a(2, m.missing);
  a(3, m.uncounted);
  a(4, m.work);
}
template <typename Archive>
void Fields(Archive& a, BarrierRequest& m) {
  a(1, m.stamp);
  a(2, m.name);
  a(3, m.parties);
  a(4, m.elastic);
}
template <typename Archive>
void Fields(Archive& a, AwaitTurnRequest& m) {
  a(1, m.stamp);
  a(2, m.generation);
  a(3, m.clock);
  a(4, m.local_step);
  a(5, m.leaves);
}
template <typename Archive>
void Fields(Archive& a, AwaitTurnReply& m) {
  a(1, m.clock);
}
template <typename Archive>
void Fields(Archive& a, OpenDirectRequest& m) {
  a(1, m.stamp);
}
template <typename Archive>
void Fields(Archive& a, OpenDirectReply& m) {
  a(1, m.socket);
  a(2, m.ticket);
  a(3, m.clients);
}
template <typename Archive>
void Fields(Archive& a, EnterDirectRequest& m) {
  a(1, m.stamp);
  a(2, m.ticket);
}
template <typename Archive>
void Fields(Archive& a, RowsRequest& m) {
  a(1, m.stamp);
  a(2, m.slice);
  a(3, m.generation);
  a(4, m.rows);
  a(5, m.global_step);
  a(6, m.scale);
  a(7, m.last);
}
template <typename Archive>
void Fields(Archive& a, LoadCheckpointRequest& m) {
  a(1, m.path);
}
template <typename Archive>
void Fields(Archive& a, LoadCheckpointReply& m) {
  a(1, m.global_step);
}
template <typename Archive>
void Fields(Archive& a, ReportLoadRequest& m) {
  a(1, m.stamp);
  a(2, m.error);
  a(3, m.global_step);
}
template <typename Archive>
void Fields(Archive& a, QueueComponent& m) {
  a(1, m.dtype);
  a(2, m.shape);
}
template <typename Archive>
void Fields(Archive& a, OpenQueueRequest& m) {
  a(1, m.task);
  a(2, m.lane);
  a(3, m.name);
  a(4, m.capacity);
  a(5, m.components);
}
template <typename Archive>
void Fields(Archive& a, QueueRequest& m) {
  a(1, m.lane);
  a(2, m.sequence);
  a(3, m.wait_ms);
  a(4, m.count);
  a(5, m.small_batch);
  a(6, m.cancel_pending);
}
template <typename Archive>
void Fields(Archive& a, QueueReply& m) {
  a(1, m.elements);
  a(2, m.size);
  a(3, m.closed);
}
template <typename Archive>
void Fields(Archive& a, WorkSpec& m) {
  a(1, m.name);
  a(2, m.rows);
  a(3, m.rows_per_unit);
  a(4, m.epochs);
}
template <typename Archive>
void Fields(Archive& a, TakeWorkRequest& m) {
  a(1, m.stamp);
  a(2, m.spec);
  a(3, m.after);
  a(4, m.over);
}
template <typename Archive>
void Fields(Archive& a, GiveUpWorkRequest& m) {
  a(1, m.stamp);
  a(2, m.tickets);
}
template <typename Archive>
void Fields(Archive& a, TakeWorkReply& m) {
  a(1, m.answer);
  a(2, m.ticket);
  a(3, m.epoch);
  a(4, m.begin);
  a(5, m.end);
}
template <typename Archive>
void Fields(Archive& a, WorkEntry& m) {
  a(1, m.epoch);
  a(2, m.begin);
  a(3, m.end);
  a(4, m.holder);
  a(5, m.ticket);
  a(6, m.in_update);
}
template <typename Archive>
void Fields(Archive& a, WorkHolder& m) {
  a(1, m.client);
  a(2, m.incarnation);
  a(3, m.newest);
  a(4, m.given);
  a(5, m.last);
}
template <typename Archive>
void Fields(Archive& a, WorkState& m) {
  a(1, m.spec);
  a(2, m.epoch);
  a(3, m.next);
  a(4, m.entries);
  a(5, m.holders);
}

// Nested messages are written in place.
class Writer {
 public:
  explicit Writer(std::string& out) : pbf_(out) {}

  template <typename T>
  void operator()(uint32_t tag, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      pbf_.add_string(tag, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      pbf_.add_double(tag, value);
    } else if constexpr (std::is_enum_v<T>) {
      pbf_.add_uint64(tag, static_cast<uint64_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
      pbf_.add_uint64(tag, static_cast<uint64_t>(static_cast<int64_t>(value)));
    } else {
      Writer nested(pbf_, tag);
      Fields(nested, value);
    }
  }
  template <typename T>
  void operator()(uint32_t tag, std::vector<T>& values) {
    if constexpr (std::is_integral_v<T>) {
      pbf_.add_packed_uint64(tag, values.begin(), values.end());
    } else if constexpr (std::is_floating_point_v<T>) {
      pbf_.add_packed_double(tag, values.begin(), values.end());
    } else {
      for (T& value : values) (*this)(tag, value);
    }
  }

 private:
  Writer(protozero::pbf_writer& outer, uint32_t tag) : pbf_(outer, tag) {}

  protozero::pbf_writer pbf_;
};

// It says how long the bulk is, so it can't be left to whoever looks at the message later.
struct UnknownWirePrecision final : protozero::exception {
  const char* what() const noexcept override { return "unknown wire precision; accepted: 0 fp32, 1 bf16, 2 fp16"; }
};

// Stands on one field of the message and hands it to the member whose number it carries; others are skipped, so that a
// later version may add fields.
class Reader {
 public:
  template <typename Message>
  static void Parse(protozero::pbf_reader pbf, Message& message) {
    while (pbf.next()) {
      Reader field(pbf);
      Fields(field, message);
      if (!field.consumed_) pbf.skip();
    }
  }

  template <typename T>
  void operator()(uint32_t tag, T& value) {
    if (consumed_ || pbf_.tag() != tag) return;
    consumed_ = true;
    Read(value);
  }

 private:
  explicit Reader(protozero::pbf_reader& pbf) : pbf_(pbf) {}

  // protozero takes another type of field for a bug of ours and asserts; here it is a peer's mistake.
  void Expect(protozero::pbf_wire_type type) const {
    if (pbf_.wire_type() != type) throw protozero::unknown_pbf_wire_type_exception();
  }
  void Read(std::string& value) {
    Expect(protozero::pbf_wire_type::length_delimited);
    value = pbf_.get_string();
  }
  void Read(double& value) {
    Expect(protozero::pbf_wire_type::fixed64);
    value = pbf_.get_double();
  }
  template <typename T>
  void Read(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      Expect(protozero::pbf_wire_type::varint);
      const uint64_t number = pbf_.get_uint64();
      if (std::is_same_v<T, WirePrecision> && number >= kWirePrecisions) throw UnknownWirePrecision();
      value = static_cast<T>(number);
    } else {
      Expect(protozero::pbf_wire_type::length_delimited);
      Parse(pbf_.get_message(), value);
    }
  }
  template <typename T>
  void Read(std::vector<T>& values) {
    Expect(protozero::pbf_wire_type::length_delimited);
    if constexpr (std::is_integral_v<T>) {
      for (uint64_t value : pbf_.get_packed_uint64()) values.push_back(static_cast<T>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      for (double value : pbf_.get_packed_double()) values.push_back(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      values.push_back(pbf_.get_string());
    } else {
      Parse(pbf_.get_message(), values.emplace_back());
    }
  }

  protozero::pbf_reader& pbf_;
  bool consumed_ = false;
};

// Most messages have fewer: one allocation instead of several that grow.
constexpr size_t kUsualBytes = 96;

template <typename Message>
void EncodeMessage(std::string& bytes, const Message& message) {
  bytes.clear();
  bytes.reserve(kUsualBytes);
  Writer writer(bytes);
  Fields(writer, const_cast<Message&>(message));  // Writer only reads
}

template <typename Message>
void Reset(Message& message) {
  message = Message();
}
void Reset(PushPullRequest& message) { message.Clear(); }

template <typename Message>
absl::Status DecodeMessage(const std::string& bytes, Message& message) {
  Reset(message);
  try {
    Reader::Parse(protozero::pbf_reader(bytes), message);
  } catch (const protozero::exception& error) {
    return absl::InvalidArgumentError(std::string("malformed control message: ") + error.what());
  }
  return absl::OkStatus();
}

}  // namespace

std::string StoreMethodName(uint16_t method) {
  static constexpr std::array<const char*, kStoreMethods> kNames = {
      "unknown",      "join",        "initialize", "await_ready", "push_pull",         "heartbeat",       "done",
      "shutdown",     "status",      "save_part",  "export_part", "commit_checkpoint", "load_checkpoint", "report_load",
      "barrier",      "gather_rows", "push_rows",  "unknown",     "unknown",           "clock",           "open_direct",
      "enter_direct", "hold",        "mark",       "open_queue",  "enqueue",           "dequeue",         "close_queue",
      "queue_size",   "await_turn",  "take_work",  "give_up_work"};
  return kNames[method < kNames.size() ? method : 0];
}

#define MUSTER_DEFINE_MESSAGE(Message)         \
  std::string Encode(const Message& message) { \
    std::string bytes;                         \
    EncodeMessage(bytes, message);             \
    return bytes;                              \
  }                                            \
  absl::Status Decode(const std::string& bytes, Message& message) { return DecodeMessage(bytes, message); }
MUSTER_STORE_MESSAGES(MUSTER_DEFINE_MESSAGE)
#undef MUSTER_DEFINE_MESSAGE

void EncodeTo(std::string& bytes, const PushPullRequest& message) { EncodeMessage(bytes, message); }
void EncodeTo(std::string& bytes, const PushPullReply& message) { EncodeMessage(bytes, message); }

}  // namespace muster
