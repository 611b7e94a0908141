// Spans and chunks: how the pool divides its memory file.
//
// Role: the derived free map of the pool. A span is 64 KiB of the file, the smallest piece in which
// room is taken from the system and given back; a group is the 32 spans of a large page, the piece
// in which a pool that is not small takes room, and gives it back at a fiftieth of the cost; a chunk
// is 1024 spans, the piece that is mapped.
// Units: units of kPlaceUnit (16) bytes; span numbers count from the start of the file.
// Threads: everything here is guarded by the pool's mutex, but `victims`, which only the thread
// that compacts writes and reads.
// Invariants: 1. A bit of `free_map` is set when its unit is free and no cache holds it. 2.
// free_units is the number of set bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/format.hpp"
#include "os/memory_file.hpp"

namespace uzram::engine {

using SpanIndex = std::uint32_t;
inline constexpr SpanIndex kNoSpan = ~SpanIndex{0};

inline constexpr std::uint32_t kSpanBytes = 64 << 10;
inline constexpr std::uint32_t kSpanUnits = kSpanBytes / kPlaceUnit;
inline constexpr unsigned kSpanShift = 12;  // units to spans
static_assert(kSpanUnits == 1U << kSpanShift);
inline constexpr std::uint32_t kSpansPerChunk = 1024;
// A large page of the system, and the spans in it.
inline constexpr std::uint32_t kGroupSpans = os::kLargePage / kSpanBytes;
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{kSpansPerChunk} * kSpanBytes;
inline constexpr unsigned kChunkShift = 22;  // units to chunks
static_assert(kChunkBytes / kPlaceUnit == std::uint64_t{1} << kChunkShift);
// What 36 bits of place can name.
inline constexpr std::uint32_t kMaxChunks = 1U << (36 - kChunkShift);

enum class SpanState : std::uint8_t {
  absent,   // holds no memory
  moving,   // between absent and present; one thread deals with it
  reserve,  // present, wholly free
  in_use,   // present; on the list of its bucket when it has free units and is no victim
};

// Raw pages are aligned to the page, and slots of fill words are exempt from the limit, so both
// have spans of their own.
enum class SpanUse : std::uint8_t { objects, raw, slots };
inline constexpr std::size_t kSpanUses = 3;

struct Span {
  static constexpr std::size_t kMapWords = kSpanUnits / 64;

  std::array<std::uint64_t, kMapWords> free_map;
  std::uint32_t free_units;
  SpanIndex next;
  SpanIndex previous;
  SpanState state;
  SpanUse use;
  bool listed;
  bool victim;

  // REQUIRES: the units are not free.
  void set_free(std::uint32_t first, std::uint32_t count) noexcept;
  // REQUIRES: the units are free.
  void set_used(std::uint32_t first, std::uint32_t count) noexcept;
  // The first run of free units at or after `from`, at most `limit` long; length 0 when none.
  struct Run {
    std::uint32_t first;
    std::uint32_t count;
  };
  [[nodiscard]] Run next_free_run(std::uint32_t from, std::uint32_t limit) const noexcept;
};

struct Chunk {
  os::Mapping memory;
  // kSpansPerChunk Span, taken from the system in the order of first use.
  os::Mapping span_memory;
  Span* spans = nullptr;
  // Spans whose Span may be looked at: [0, known_spans).
  std::uint32_t known_spans = 0;
  std::uint32_t absent_spans = kSpansPerChunk;
  std::array<std::uint64_t, kSpansPerChunk / 64> absent{};
  // How many spans of each group are in reserve.
  std::array<std::uint8_t, kSpansPerChunk / kGroupSpans> reserve_of_group{};
  // Spans that the compaction under way empties.
  std::array<std::uint64_t, kSpansPerChunk / 64> victims{};
};

}  // namespace uzram::engine
