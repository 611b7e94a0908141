// What ublk's kernel driver and its servers say to each other.
//
// Role: numbers and layouts; nothing here does anything. Debian 12's headers are of Linux 6.1 and lack
// what came later, so all of it stands here.
// Source: the kernel's include/uapi/linux/ublk_cmd.h and Documentation/block/ublk.rst.
// Units: sectors of 512 bytes; shifts are binary logarithms of bytes.
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uzram::ublk {

inline constexpr const char* kControlPath = "/dev/ublk-control";
inline constexpr std::uint32_t kAnyId = ~std::uint32_t{0};
// Tags for which each queue's array has room.
inline constexpr std::uint32_t kMaxDepth = 4096;

// Control commands; legacy kernels take the bare numbers.
enum class ControlOp : std::uint8_t {
  get_queue_affinity = 0x01,
  get_dev_info = 0x02,
  add_dev = 0x04,
  del_dev = 0x05,
  start_dev = 0x06,
  stop_dev = 0x07,
  set_params = 0x08,
  get_dev_info2 = 0x12,
  get_features = 0x13,
};

// Commands of a queue.
enum class IoOp : std::uint8_t {
  fetch = 0x20,
  commit_and_fetch = 0x21,
  need_get_data = 0x22,
};

// As ioctl numbers, which Linux takes from 6.4 on: direction, size of the command, 'u', number.
inline constexpr std::uint32_t kReadsControl = 0x8020'7500;
inline constexpr std::uint32_t kWritesControl = 0xC020'7500;
inline constexpr std::uint32_t kWritesIo = 0xC010'7500;

// Features, as flags of a device.
inline constexpr std::uint64_t kNeedGetData = 1U << 2;
inline constexpr std::uint64_t kUnprivileged = 1U << 5;
inline constexpr std::uint64_t kIoctlEncoding = 1U << 6;
inline constexpr std::uint64_t kUserCopy = 1U << 7;

enum class DeviceState : std::uint16_t { dead = 0, live = 1, quiesced = 2, fail_io = 3 };

// Results of a fetch.
inline constexpr std::int32_t kIoReady = 0;
inline constexpr std::int32_t kIoNeedsData = 1;

struct ControlCommand {
  std::uint32_t device_id = 0;
  std::uint16_t queue_id = 0xffff;
  // Of the buffer at `address`.
  std::uint16_t length = 0;
  std::uint64_t address = 0;
  std::uint64_t data = 0;
  // For unprivileged devices the buffer begins with the path of the character device.
  std::uint16_t path_length = 0;
  std::uint16_t pad = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(ControlCommand) == 32);

struct DeviceInfo {
  std::uint16_t queues = 0;
  std::uint16_t depth = 0;
  DeviceState state = DeviceState::dead;
  std::uint16_t pad0 = 0;
  std::uint32_t max_io_bytes = 0;
  std::uint32_t device_id = 0;
  std::int32_t server_pid = 0;
  std::uint32_t pad1 = 0;
  std::uint64_t flags = 0;
  std::uint64_t server_flags = 0;
  std::uint32_t owner_uid = 0;
  std::uint32_t owner_gid = 0;
  std::uint64_t reserved1 = 0;
  std::uint64_t reserved2 = 0;
};
static_assert(sizeof(DeviceInfo) == 64 && offsetof(DeviceInfo, flags) == 24);

// Which parts of Parameters hold something.
inline constexpr std::uint32_t kHasBasic = 1U << 0;
inline constexpr std::uint32_t kHasDiscard = 1U << 1;
inline constexpr std::uint32_t kReadOnly = 1U << 0;

struct Parameters {
  std::uint32_t length = 0;
  std::uint32_t types = 0;
  // Basic.
  std::uint32_t attributes = 0;
  std::uint8_t logical_block_shift = 0;
  std::uint8_t physical_block_shift = 0;
  std::uint8_t optimal_io_shift = 0;
  std::uint8_t minimal_io_shift = 0;
  std::uint32_t max_sectors = 0;
  std::uint32_t chunk_sectors = 0;
  std::uint64_t device_sectors = 0;
  std::uint64_t virtual_boundary_mask = 0;
  // Discard.
  std::uint32_t discard_alignment = 0;
  std::uint32_t discard_granularity = 0;
  std::uint32_t max_discard_sectors = 0;
  std::uint32_t max_write_zeroes_sectors = 0;
  std::uint16_t max_discard_segments = 0;
  std::uint16_t reserved = 0;
  std::uint32_t pad = 0;
};
static_assert(sizeof(Parameters) == 64 && offsetof(Parameters, discard_alignment) == 40);

// One request, in the array that is mapped from the character device, a tag's at its index.
struct IoDescriptor {
  // The operation in the low byte, its flags above.
  std::uint32_t operation = 0;
  std::uint32_t sectors = 0;
  std::uint64_t start_sector = 0;
  std::uint64_t address = 0;
};
static_assert(sizeof(IoDescriptor) == 24);

enum class IoKind : std::uint8_t {
  read = 0,
  write = 1,
  flush = 2,
  discard = 3,
  write_zeroes = 5,
};
inline constexpr std::uint32_t kKindMask = 0xff;
inline constexpr std::uint32_t kNoUnmap = 1U << 15;

// Where the array of queue `queue` is mapped from.
inline constexpr std::uint64_t descriptors_offset(std::uint32_t queue) noexcept {
  return std::uint64_t{queue} * kMaxDepth * sizeof(IoDescriptor);
}

// With kUserCopy: where pread finds the data of a tag's write and pwrite takes that of its read.
inline constexpr std::uint64_t data_offset(std::uint32_t queue, std::uint32_t tag) noexcept {
  return 0x8000'0000 + (std::uint64_t{queue} << 41) + (std::uint64_t{tag} << 25);
}
// What fits between the data of two tags.
inline constexpr std::uint32_t kMaxIoBytes = 1U << 25;

// Where in a submission entry of a ring a command begins: an IoCommand in a plain entry, a ControlCommand
// in one of 128 bytes.
inline constexpr std::size_t kCommandOffset = 48;

struct IoCommand {
  std::uint16_t queue_id = 0;
  std::uint16_t tag = 0;
  // A commit's: bytes or a negative errno.
  std::int32_t result = 0;
  // Without kUserCopy: the buffer.
  std::uint64_t address = 0;
};
static_assert(sizeof(IoCommand) == 16);

}  // namespace uzram::ublk
