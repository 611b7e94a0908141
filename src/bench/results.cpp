#include "bench/results.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/write_all.hpp"

namespace uzram::bench {
namespace {

// More than any run writes; a file beyond it is not one of ours.
constexpr std::size_t kLongestFile = std::size_t{256} << 20;

Error file_error(const std::string& path, std::string_view doing, int errno_value) {
  return system_error(fmt::format("results \"{}\": {}", path, doing), errno_value);
}

class File {
 public:
  File(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}  // less the user's umask
  ~File() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

// A pipe or a terminal cannot be replaced, only written to.
Result<void> write_in_place(const std::string& path, std::string_view text) {
  const File file(path, O_WRONLY);
  if (file.fd() < 0 || !os::write_all(file.fd(), text)) {
    return file_error(path, "write", errno);
  }
  return {};
}

// What is written first, to take the place of `path` when it is complete.
std::string fresh_name(const std::string& path) {
  return fmt::format("{}.new-{}", path, ::getpid());
}

constexpr int kFresh = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;

Result<void> replace(const std::string& path, std::string_view text) {
  const std::string fresh = fresh_name(path);
  const File file(fresh, kFresh);
  if (file.fd() < 0) {
    return file_error(path, "create", errno);
  }
  if (!os::write_all(file.fd(), text) || ::fdatasync(file.fd()) != 0 ||
      ::rename(fresh.c_str(), path.c_str()) != 0) {
    Error error = file_error(path, "write", errno);
    ::unlink(fresh.c_str());
    return error;
  }
  return {};
}

// Where the text of the file `path` goes.
struct Place {
  std::string path;
  bool in_place = false;
};

Result<Place> place_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return Place{path, false};
  }
  if (S_ISDIR(status.st_mode)) {
    return Error{Errc::invalid_argument, 0,
                 fmt::format("results \"{}\": expected a file, found a folder", path)};
  }
  if (!S_ISREG(status.st_mode)) {
    return Place{path, true};
  }
  // Where `path` is a link, what it leads to is replaced.
  std::error_code problem;
  const std::filesystem::path real = std::filesystem::canonical(path, problem);
  return problem ? Result<Place>(file_error(path, "resolve", problem.value()))
                 : Place{real.string(), false};
}

Result<std::string> read_all(const std::string& path) {
  const File file(path, O_RDONLY);
  if (file.fd() < 0) {
    return file_error(path, "open", errno);
  }
  std::string text;
  std::size_t used = 0;
  while (true) {
    text.resize(used + (std::size_t{1} << 20));
    const ssize_t count = ::read(file.fd(), text.data() + used, text.size() - used);
    if (count < 0 && errno != EINTR) {
      return file_error(path, "read", errno);
    }
    used += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    if (used > kLongestFile) {
      return Error{
          Errc::invalid_argument, 0,
          fmt::format("results \"{}\": expected at most {} MiB", path, kLongestFile >> 20U)};
    }
    if (count == 0) {
      text.resize(used);
      return text;
    }
  }
}

}  // namespace

double Spread::median() const {
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : sorted[middle - 1] / 2 + sorted[middle] / 2;
}

double Spread::min() const { return *std::min_element(values_.begin(), values_.end()); }

double Spread::max() const { return *std::max_element(values_.begin(), values_.end()); }

Result<ResultFile> read_results(const std::string& path) {
  const Result<std::string> text = read_all(path);
  if (!text) {
    return text.error();
  }
  Result<ResultFile> results = parse_results(*text);
  if (!results) {
    Error error = results.error();
    error.message = fmt::format("results \"{}\": {}", path, error.message);
    return error;
  }
  return results;
}

Result<void> write_results(const std::string& path, const ResultFile& results) {
  // A name that is not UTF-8 is written with replacement characters, not refused after hours.
  const std::string text =
      to_json(results).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const Result<Place> place = place_of(path);
  if (!place) {
    return place.error();
  }
  return place->in_place ? write_in_place(path, text) : replace(place->path, text);
}

Result<void> check_results_file(const std::string& path) {
  const Result<Place> place = place_of(path);
  if (!place) {
    return place.error();
  }
  if (place->in_place) {
    // Not opened: a pipe would wait for its reader.
    return ::access(path.c_str(), W_OK) == 0 ? Result<void>() : file_error(path, "write", errno);
  }
  const std::string fresh = fresh_name(place->path);
  const File file(fresh, kFresh);
  if (file.fd() < 0) {
    return file_error(path, "create", errno);
  }
  ::unlink(fresh.c_str());
  return {};
}

}  // namespace uzram::bench
