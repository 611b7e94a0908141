// Device: a block device whose contents live compressed in memory.
//
// Role: the engine as an embedding program sees it. A Device is created from DeviceOptions and used
// through synchronous calls or through Queues.
// Units: bytes throughout; offsets and lengths are multiples of kSectorSize (512), pages are
// DeviceOptions::page_size_bytes.
// Errors: data operations return Errc. invalid_argument: offset or length not sector-aligned.
// out_of_range: the range ends beyond the device. no_space: over mem_limit or the system has no
// memory to give. corrupt: stored data did not decode, or is not what its checksum says; the page can
// be written whole or discarded, and is good then. After a failed write each page of the range holds
// either its old content or the new one, never anything else, and the page that failed holds the old
// one.
// Threads: all members may be called from any number of threads at once, destruction excepted.
// Overlapping operations leave each sector with the content of one of them; pages of one request
// and requests of one batch have no order among themselves.
// Processes: a child of fork must neither use nor destroy a device: the mappings are not inherited.
// A program that locks its memory needs mlockall's MCL_ONFAULT; without it MCL_FUTURE takes memory
// for a whole table, and a GiB for checksums, when the device is made.
// Cost: a data operation makes no system call and takes no memory from the heap, except when the
// device has to take room from the system or gives it back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"
#include "uzram/fifo.hpp"
#include "uzram/request.hpp"

namespace uzram {

namespace engine {
class Executor;
}

inline constexpr std::uint32_t kDefaultPageSize = 4096;
inline constexpr std::uint64_t kMaxDiskSize = std::uint64_t{16} << 40;
inline constexpr std::uint32_t kMaxCompStreams = 1024;

inline constexpr std::uint32_t kMaxWorkers = 256;

// Queues carry out discards and zeroings of this length a piece at a time.
inline constexpr std::uint64_t kLongRangeBytes = std::uint64_t{4} << 20;

// Who does the work of a request.
enum class Mode : std::uint8_t {
  nowait,     // the submitter, before submit() returns
  async,      // worker threads; submit() only queues
  automatic,  // "auto": the submitter, helped by idle workers when there is enough to share
};
// "nowait", "async" or "auto", and back.
[[nodiscard]] std::string_view mode_name(Mode mode) noexcept;
[[nodiscard]] std::optional<Mode> mode_from_name(std::string_view name) noexcept;

struct DeviceOptions {
  std::string name = "uzram0";
  // A multiple of the page size, 1 page to kMaxDiskSize.
  std::uint64_t disksize_bytes = 0;
  // 4096, 8192 or 16384.
  std::uint32_t page_size_bytes = kDefaultPageSize;
  // Compressor, one of codec names() (lz4, lz4hc, zstd, pagez, deflate, lzo when built in).
  std::string algorithm = "lz4";
  // The codec's own default when unset.
  std::optional<int> level;
  // 0: none.
  std::uint64_t mem_limit_bytes = 0;
  // Room of the pool that is taken from the system when the device is made, and kept free ahead of
  // use from then on; 0: none. For devices used as swap, whose writes make memory free for
  // everybody else and must not wait for any themselves.
  // While some of it is left, a write takes no memory from the system; the thread in the background
  // takes more in its place. It does so even where the machine has none to spare, if the process
  // was marked as an I/O flusher before the device was made (PR_SET_IO_FLUSHER): set
  // mem_limit_bytes then.
  // What is freed goes back to the system only beyond the reserve. For the same reason the page
  // table, 8 bytes for each page of the device, is taken whole and kept, and threads that help
  // submitters are started with the device.
  // Rounded up to 64 KiB. It counts in mem_used_total and mem_used_max. With mem_limit_bytes: no
  // more than that, and later no more than what is stored leaves of it. Needs `background`.
  std::uint64_t reserve_bytes = 0;
  // 0: one compression stream per CPU, with spares; N: N streams shared by all threads.
  std::uint32_t max_comp_streams = 0;
  Mode mode = Mode::automatic;
  // async: threads that carry out requests; automatic: threads that may help one submitter. 0: as
  // many as this process has CPUs. At most kMaxWorkers. The threads belong to the process, which has
  // as many as the most demanding of its devices asks for.
  std::uint32_t workers = 0;
  // A thread of the process takes room for the pool before it is needed and compacts the pool when
  // much of it is holes. Without it writes take room themselves, and compact when they find none.
  bool background = true;
  // A CRC32C of everything the pool holds, compared at each read: bits that have changed in memory
  // give Errc::corrupt for their page, and never other data than was written. 4 bytes for each object,
  // and for each 4 KiB of the pool.
  bool checksum = false;
  // The device trains the compressor's tables with samples of its own pages, and uses them for what is
  // written from then on where they save enough. Only for compressors that can be trained (pagez).
  // Takes up to 8 MiB for seconds at a time, and 0.4 MiB for each of at most 15 generations of tables.
  // Needs `background`.
  bool train = false;
};

// Statistics under the names and with the meanings of zram's mm_stat and io_stat. Bytes or counts.
struct DeviceStats {
  // mm_stat
  std::uint64_t orig_data_size = 0;  // stored pages times the page size, same-filled ones too
  // Sum of object sizes, with their checksums; same-filled pages count nothing.
  std::uint64_t compr_data_size = 0;
  std::uint64_t mem_used_total = 0;  // what the pool has taken from the system
  std::uint64_t mem_limit = 0;
  std::uint64_t mem_used_max = 0;  // high-water mark of mem_used_total
  std::uint64_t same_pages = 0;
  std::uint64_t pages_compacted = 0;   // system pages given back by compaction
  std::uint64_t huge_pages = 0;        // pages stored raw, now
  std::uint64_t huge_pages_since = 0;  // pages stored raw since creation
  // io_stat
  std::uint64_t failed_reads = 0;
  std::uint64_t failed_writes = 0;
  std::uint64_t invalid_io = 0;   // requests refused for their range or alignment
  std::uint64_t notify_free = 0;  // whole pages covered by discards
  // beyond zram
  std::uint64_t corrupt_pages = 0;  // pages found corrupt by reads and partial writes, each time
  // Resident: header, summary, page table, recipes, sums of raw pages.
  std::uint64_t table_bytes = 0;
  // In private memory: derived free maps of the pool, and what training takes.
  std::uint64_t metadata_bytes = 0;
  // Trained tables in use, and the share of bytes that the last ones saved on pages that they were
  // not trained with, when they were put to use.
  std::uint32_t generations = 0;
  std::optional<double> trained_saving;
};

enum class ExtentState : std::uint8_t {
  hole,  // nothing stored; reads as zeroes
  zero,  // allocated, known to be all zeroes
  data,
};

struct Extent {
  std::uint64_t length = 0;
  ExtentState state = ExtentState::hole;
};

class Device {
 public:
  // Errors: invalid_argument with a message that names the option, the value and what is expected;
  // no_space or system when memory for the device cannot be had.
  static Result<std::unique_ptr<Device>> create(const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Errc read(std::uint64_t offset, std::span<std::byte> buffer) noexcept;
  Errc write(std::uint64_t offset, std::span<const std::byte> buffer) noexcept;
  Errc discard(std::uint64_t offset, std::uint64_t length) noexcept;
  // keep_allocated: the pages stay allocated (Op::allocate_zeroes), otherwise they are freed.
  Errc write_zeroes(std::uint64_t offset, std::uint64_t length, bool keep_allocated) noexcept;
  Errc flush() noexcept;

  // The extent that begins at `offset`: pages of one state, cut at `limit`. Neighbouring extents
  // may have the same state. A snapshot: other threads may change it at once. REQUIRES: offset <
  // limit <= disksize.
  [[nodiscard]] Extent extent_at(std::uint64_t offset, std::uint64_t limit) const noexcept;

  // Moves objects out of sparsely used spans and gives the spans back. Returns the bytes given
  // back.
  std::uint64_t compact() noexcept;

  // 0: none. Below what is in use, further writes that need room fail until enough is freed.
  void set_mem_limit(std::uint64_t bytes) noexcept;
  // Restarts the high-water mark mem_used_max at the present use.
  void reset_mem_used_max() noexcept;

  // Requests being carried out finish as they began. `workers` as in DeviceOptions. Errors:
  // invalid_argument; system when threads cannot be had, and then nothing has changed.
  Result<void> set_mode(Mode mode, std::uint32_t workers);

  // Pauses training, or has it go on; tables in use stay. Errors: invalid_argument when the device was
  // made without `train`.
  Result<void> set_training(bool on);

  // For front ends that check ranges themselves: counts a request they refused in invalid_io.
  void count_invalid_io() noexcept;

  [[nodiscard]] DeviceStats stats() const noexcept;
  // As given at creation, with `level` filled in and reserve_bytes rounded up; mem_limit_bytes, mode,
  // workers and train are those in force.
  [[nodiscard]] DeviceOptions options() const;
  [[nodiscard]] std::uint64_t disksize_bytes() const noexcept;
  [[nodiscard]] std::uint32_t page_size_bytes() const noexcept;

  // The two memory files that hold everything not rebuildable; docs/format.md describes them. The
  // descriptors belong to the device.
  [[nodiscard]] int table_fd() const noexcept;
  [[nodiscard]] int pool_fd() const noexcept;

  struct Impl;
  [[nodiscard]] Impl& impl() noexcept { return *impl_; }

 private:
  explicit Device(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

// A submission and completion queue. Discards and zeroings from kLongRangeBytes on that the
// submitter carries out itself go on a piece at a time, whenever reap() finds nothing else and while
// wait() waits, so that what is submitted meanwhile does not wait for all of them. A piece takes a
// few microseconds, or half a millisecond where a MiB goes back to the system.
// Threads: one thread at a time uses a Queue; a device may have any number of them.
class Queue {
 public:
  explicit Queue(Device& device) noexcept : device_(device) {}
  // Waits for requests that have not completed; they need not be reaped. Long ones that have not
  // been carried out to their end are not.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Takes a batch. The requests may already be complete when this returns; they are delivered by
  // reap() or wait(), not earlier, in any order.
  void submit(std::span<Request* const> batch) noexcept;
  // The next completed request, or nullptr when there is none at present.
  [[nodiscard]] Request* reap() noexcept;
  // The next completed request; sleeps until there is one. nullptr when nothing is outstanding.
  [[nodiscard]] Request* wait() noexcept;
  // Requests submitted and not delivered yet.
  [[nodiscard]] std::size_t outstanding() const noexcept { return outstanding_; }

  // For threads that sleep elsewhere, in a ring for example: the eventfd that is written when a
  // request completes after arm_doorbell() has returned true. REQUIRES: nothing is outstanding; the
  // descriptor stays open as long as the Queue lives.
  void set_doorbell(int event_fd) noexcept { doorbell_fd_ = event_fd; }
  // False: a completed request is there, or one that reap() carries on with; reap first. True: the
  // next one to complete will ring, once.
  [[nodiscard]] bool arm_doorbell() noexcept { return arm(doorbell); }

 private:
  friend class engine::Executor;
  // By workers: the request has completed.
  void arrive(Request& request) noexcept;
  // By the submitter: the request has completed.
  void append(Request& request) noexcept;
  // By the submitter: the request is to be carried out a piece at a time.
  void defer(Request& request) noexcept;
  // The next piece of the first of those.
  void advance() noexcept;
  enum Awaited : std::uint32_t { nobody, doorbell, sleeper };
  // False: a completed request is there. True: the next one to complete reaches `awaited`.
  bool arm(Awaited awaited) noexcept;

  Device& device_;
  int doorbell_fd_ = -1;
  std::size_t outstanding_ = 0;
  Fifo<Request> completed_;
  // To be carried out a piece at a time.
  Fifo<Request> deferred_;
  // Completed by workers, the latest first.
  alignas(64) std::atomic<Request*> arrived_{nullptr};
  // How the submitter is to be told of the next request that completes; a futex word.
  std::atomic<std::uint32_t> armed_{nobody};
  // Requests that workers have not let go of.
  std::atomic<std::uint32_t> in_flight_{0};
};

}  // namespace uzram
