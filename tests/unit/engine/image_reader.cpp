// Reads a device back by its two memory files alone.
//
// Role: the other process of format_test. It knows engine/format.hpp, engine/recipes.hpp and the
// codecs and nothing else of the engine, maps both files read-only, and writes the whole disk to
// standard output.
// Usage: image_reader TABLE_FD POOL_FD (descriptors it inherited)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.hpp"
#include "codec/codec.hpp"
#include "engine/format.hpp"
#include "engine/recipes.hpp"

namespace {

using namespace uzram;
using namespace uzram::engine;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "image_reader: %s\n", what);
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

std::span<const std::byte> map_all(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) {
    fail("fstat");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    fail("mmap");
  }
  return {static_cast<const std::byte*>(address), size};
}

// Fails when the four bytes at `sum` are not the CRC32C of `bytes`.
void check_sum(std::span<const std::byte> bytes, const std::byte* sum) {
  std::uint32_t expected = 0;
  std::memcpy(&expected, sum, sizeof expected);
  if (uzram::crc32c(bytes) != expected) {
    fail("a page does not have its checksum");
  }
}

// `sums`: those of raw pages; nullptr: there are none.
std::vector<std::byte> read_page(Entry entry, std::span<const std::byte> pool,
                                 const std::byte* sums, const codec::Codec& codec,
                                 codec::Workspace& workspace, std::size_t page_size) {
  std::vector<std::byte> page(page_size);
  const std::uint64_t offset = entry.owns_room() ? entry.place() * kPlaceUnit : 0;
  std::uint32_t size = entry.owns_room() ? entry.size() : 0;
  if (sums != nullptr && entry.kind() == Kind::raw) {
    check_sum(pool.subspan(offset, size), sums + offset / 4096 * 4);
  } else if (sums != nullptr && entry.owns_room()) {
    size -= 4;
    check_sum(pool.subspan(offset, size), pool.data() + offset + size);
  }
  switch (entry.kind()) {
    case Kind::empty:
      break;
    case Kind::fill:
    case Kind::fill_slot: {
      std::uint64_t word = entry.kind() == Kind::fill ? entry.fill_word() : 0;
      if (entry.kind() == Kind::fill_slot) {
        std::memcpy(&word, pool.data() + offset, sizeof word);
      }
      for (std::size_t i = 0; i < page_size; i += sizeof word) {
        std::memcpy(page.data() + i, &word, sizeof word);
      }
      break;
    }
    case Kind::raw:
      std::memcpy(page.data(), pool.data() + offset, page_size);
      break;
    case Kind::object:
      if (codec.decompress(&workspace, pool.subspan(offset, size), page) != Errc::ok) {
        fail("an object does not decode");
      }
      break;
    case Kind::written_back:
      fail("a page is written back");
  }
  return page;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fail("usage: image_reader TABLE_FD POOL_FD");
  }
  const auto table = map_all(std::atoi(argv[1]));
  const auto pool = map_all(std::atoi(argv[2]));
  Header header = {};
  std::memcpy(&header, table.data(), sizeof header);
  if (header.magic != kMagic || header.format_version != kFormatVersion ||
      header.place_unit_bytes != kPlaceUnit || header.stretch_pages != kStretchPages) {
    fail("not a device of this format");
  }
  auto codec =
      codec::make(header.codecs[0].name.data(), header.codecs[0].level, header.page_size_bytes);
  if (!codec) {
    fail(codec.error().message.c_str());
  }
  if (const Result<void> loaded = load_recipes(table, **codec); !loaded) {
    fail(loaded.error().message.c_str());
  }
  auto workspace = (*codec)->make_workspace();
  if (!workspace) {
    fail("no workspace");
  }
  const std::byte* const sums =
      header.sums_offset == 0 ? nullptr : table.data() + header.sums_offset;
  for (PageIndex page = 0; page < header.disksize_bytes / header.page_size_bytes; ++page) {
    const std::uint64_t stretch = page / kStretchPages;
    std::uint64_t summary = 0;
    std::memcpy(&summary, table.data() + header.summary_offset + stretch / 64 * 8, sizeof summary);
    std::uint64_t bits = 0;
    if ((summary >> (stretch % 64) & 1) != 0) {
      std::memcpy(&bits, table.data() + header.table_offset + page * 8, sizeof bits);
    }
    const auto content =
        read_page(Entry(bits), pool, sums, **codec, **workspace, header.page_size_bytes);
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size()) {
      fail("write");
    }
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
