#include "bench/corpus.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/size.hpp"
#include "os/descriptor.hpp"
#include "os/memory_headroom.hpp"
#include "os/write_all.hpp"

namespace uzram::bench {
namespace {

constexpr std::string_view kEnding = ".pages";
constexpr std::string_view kPackedEnding = ".pages.zst";
constexpr std::size_t kPiece = std::size_t{1} << 16;

std::string quoted(const std::string& path) { return "corpus \"" + path + "\""; }

Error bad_file(Errc code, const PageFile& file, std::string_view problem) {
  return {code, 0, quoted(file.path) + ": " + std::string(problem)};
}

Error too_large(const PageFile& file, std::uint64_t most_bytes) {
  return bad_file(Errc::no_space, file,
                  "more than the " + format_size(most_bytes) +
                      " that memory has room for; free some or use a smaller corpus");
}

// Reads `fd` to its end and calls take(piece), which returns Result<void>.
template <typename Take>
Result<void> read_pieces(int fd, const PageFile& file, Take take) {
  std::vector<std::byte> piece(kPiece);
  for (;;) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got == 0) {
      return {};
    }
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return system_error(quoted(file.path), errno);
    }
    if (Result<void> taken = take(std::span(piece).first(static_cast<std::size_t>(got))); !taken) {
      return taken;
    }
  }
}

// What has been read or unpacked of a file, within the room there is.
class Intake {
 public:
  Intake(const PageFile& file, std::uint64_t most_bytes) : file_(file), most_bytes_(most_bytes) {}

  // Refuses at once what is known to become too large.
  Result<void> expect(std::uint64_t size) {
    if (size > most_bytes_) {
      return too_large(file_, most_bytes_);
    }
    bytes_.reserve(size);
    return {};
  }
  Result<void> add(std::span<const std::byte> piece) {
    if (piece.size() > most_bytes_ - bytes_.size()) {
      return too_large(file_, most_bytes_);
    }
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    return {};
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  const PageFile& file_;
  const std::uint64_t most_bytes_;
  std::vector<std::byte> bytes_;
};

// zstd frames, unpacked piece by piece.
class Unpacker {
 public:
  Unpacker(const PageFile& file, Intake& into)
      : file_(file),
        into_(into),
        context_(ZSTD_createDCtx(), &ZSTD_freeDCtx),
        room_(ZSTD_DStreamOutSize()) {}

  Result<void> add(std::span<const std::byte> piece) {
    ZSTD_inBuffer in{piece.data(), piece.size(), 0};
    bool more = true;
    while (more) {
      ZSTD_outBuffer out{room_.data(), room_.size(), 0};
      wanted_ = ZSTD_decompressStream(context_.get(), &out, &in);
      if (ZSTD_isError(wanted_) != 0) {
        return bad_file(Errc::corrupt, file_,
                        std::string("zstd cannot unpack it: ") + ZSTD_getErrorName(wanted_));
      }
      if (Result<void> taken = into_.add(std::span(room_).first(out.pos)); !taken) {
        return taken;
      }
      // A full buffer may mean that more is waiting inside, unless the frame is complete.
      more = in.pos < in.size || (out.pos == out.size && wanted_ != 0);
    }
    return {};
  }
  Result<void> finish() const {
    if (wanted_ != 0) {
      return bad_file(Errc::corrupt, file_,
                      "ends in the middle of its compressed data; copy or make it anew");
    }
    return {};
  }

 private:
  const PageFile& file_;
  Intake& into_;
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::vector<std::byte> room_;
  // What zstd still expects; 0 between frames.
  std::size_t wanted_ = 0;
};

Result<void> read_packed(int fd, const PageFile& file, Intake& into) {
  Unpacker unpacker(file, into);
  if (Result<void> done = read_pieces(fd, file, [&](auto piece) { return unpacker.add(piece); });
      !done) {
    return done;
  }
  return unpacker.finish();
}

Result<void> check_size(const PageFile& file, std::size_t size) {
  if (size == 0) {
    return bad_file(Errc::invalid_argument, file, "holds nothing, expected pages of 4096 bytes");
  }
  if (size % kDataPage != 0) {
    return bad_file(Errc::invalid_argument, file,
                    "holds " + std::to_string(size) + " bytes, expected a multiple of 4096");
  }
  return {};
}

Result<std::vector<PageFile>> find_in_folder(const std::string& folder) {
  std::vector<PageFile> files;
  std::error_code problem;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(folder, problem); !problem && entry != end;
       entry.increment(problem)) {
    if (Result<PageFile> file = page_file(entry->path().string())) {
      files.push_back(*std::move(file));
    }
  }
  if (problem) {
    return system_error(quoted(folder), problem.value());
  }
  if (files.empty()) {
    return Error{Errc::not_found, 0,
                 quoted(folder) +
                     ": a folder without page files, expected some named *.pages or *.pages.zst"};
  }
  std::sort(files.begin(), files.end(),
            [](const PageFile& a, const PageFile& b) { return a.name < b.name; });
  const auto twin =
      std::adjacent_find(files.begin(), files.end(),
                         [](const PageFile& a, const PageFile& b) { return a.name == b.name; });
  if (twin != files.end()) {
    return bad_file(Errc::invalid_argument, *twin,
                    "is there with and without .zst; remove one of the two");
  }
  return files;
}

Result<void> write_bytes(int fd, const std::string& path, std::span<const std::byte> bytes) {
  if (!os::write_all(fd, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    return system_error("cannot write \"" + path + "\"", errno);
  }
  return {};
}

Result<void> write_packed(int fd, const std::string& path, std::span<const std::byte> bytes) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     &ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setPledgedSrcSize(context.get(), bytes.size());
  std::vector<std::byte> room(ZSTD_CStreamOutSize());
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t left = 1;
  while (left != 0) {
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    left = ZSTD_compressStream2(context.get(), &out, &in, ZSTD_e_end);
    if (ZSTD_isError(left) != 0) {
      return Error{Errc::no_space, 0,
                   "cannot compress \"" + path + "\": " + ZSTD_getErrorName(left)};
    }
    if (Result<void> written = write_bytes(fd, path, std::span(room).first(out.pos)); !written) {
      return written;
    }
  }
  return {};
}

// Gives the file `from` its name. Without `overwrite` only where there is none.
Result<void> rename_file(const std::string& from, const std::string& path, bool overwrite) {
  if (!overwrite) {
    if (::link(from.c_str(), path.c_str()) == 0) {
      ::unlink(from.c_str());
      return {};
    }
    if (errno == EEXIST || ::access(path.c_str(), F_OK) == 0) {
      return Error{Errc::exists, EEXIST, "\"" + path + "\" exists already"};
    }
    // A file system without hard links.
  }
  if (::rename(from.c_str(), path.c_str()) != 0) {
    return system_error("cannot make \"" + path + "\"", errno);
  }
  return {};
}

}  // namespace

Result<PageFile> page_file(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {kEnding, kPackedEnding}) {
    if (name.ends_with(ending) && name.size() > ending.size()) {
      return PageFile{name.substr(0, name.size() - ending.size()), path, ending == kPackedEnding};
    }
  }
  return Error{Errc::invalid_argument, 0,
               "\"" + path + "\": expected a name that ends in .pages or .pages.zst"};
}

Result<std::vector<PageFile>> find_page_files(const std::string& path) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  if (!std::filesystem::status_known(status) || !std::filesystem::exists(status)) {
    return system_error(quoted(path), problem ? problem.value() : ENOENT);
  }
  if (std::filesystem::is_directory(status)) {
    return find_in_folder(path);
  }
  Result<PageFile> file = page_file(path);
  if (!file) {
    return Error{Errc::invalid_argument, 0,
                 quoted(path) + ": expected a folder, or a file named *.pages or *.pages.zst"};
  }
  return std::vector<PageFile>{*std::move(file)};
}

Result<std::vector<std::byte>> read_page_file(const PageFile& file, std::uint64_t most_bytes) {
  // Opening a pipe must not wait for its writer.
  const os::Descriptor fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0) {
    return system_error(quoted(file.path), errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return bad_file(Errc::invalid_argument, file, "expected a regular file");
  }
  Intake intake(file, most_bytes);
  Result<void> done;
  if (file.packed) {
    done = read_packed(fd.get(), file, intake);
  } else {
    done = intake.expect(static_cast<std::uint64_t>(status.st_size));
    if (done) {
      done = read_pieces(fd.get(), file, [&](auto piece) { return intake.add(piece); });
    }
  }
  if (!done) {
    return done.error();
  }
  std::vector<std::byte> bytes = intake.take();
  if (Result<void> checked = check_size(file, bytes.size()); !checked) {
    return checked.error();
  }
  return bytes;
}

std::uint64_t readable_bytes() {
  const auto headroom = os::MemoryHeadroom::open();
  if (!headroom) {
    return SIZE_MAX;
  }
  const std::uint64_t room = (*headroom)->bytes();
  return room > kLongestBlock ? (room - kLongestBlock) / 2 : 0;
}

Result<DataSets> load_data_sets(const std::string& path) {
  const auto files = find_page_files(path);
  if (!files) {
    return files.error();
  }
  DataSets sets;
  for (const PageFile& file : *files) {
    const auto bytes = read_page_file(file, readable_bytes());
    if (!bytes) {
      return bytes.error();
    }
    auto set = DataSet::make(file.name, *bytes);
    if (!set) {
      return set.error();
    }
    sets.push_back(*std::move(set));
  }
  return sets;
}

Result<void> write_page_file(const PageFile& file, std::span<const std::byte> pages,
                             bool overwrite) {
  std::string temporary = file.path + ".XXXXXX";
  // Made with mode 0600.
  const os::Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) {
    return system_error("cannot make \"" + file.path + "\"", errno);
  }
  Result<void> done = file.packed ? write_packed(fd.get(), file.path, pages)
                                  : write_bytes(fd.get(), file.path, pages);
  if (done) {
    done = rename_file(temporary, file.path, overwrite);
  }
  if (!done) {
    ::unlink(temporary.c_str());
  }
  return done;
}

}  // namespace uzram::bench
