#include "os/process_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include "os/descriptor.hpp"

namespace uzram::os {
namespace {

constexpr std::uint64_t kLongestMapping = std::uint64_t{1} << 40;
// Bits of a pagemap entry.
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kFileOrShared = std::uint64_t{1} << 61;

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool writable = false;
  bool is_private = false;
  // Anonymous pages that are present; unknown counts as some.
  bool has_anonymous = true;
  bool locked_or_huge = false;

  [[nodiscard]] bool is_swappable() const noexcept {
    return is_private && has_anonymous && !locked_or_huge && end - begin < kLongestMapping;
  }
};

// A file of proc, whole. Errors: errno.
std::optional<std::string> read_text(int folder, const char* name) {
  const Descriptor fd(::openat(folder, name, O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 16384> room{};
  for (;;) {
    const ssize_t got = ::read(fd.get(), room.data(), room.size());
    if (got == 0) {
      return text;
    }
    if (got > 0) {
      text.append(room.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

std::optional<std::uint64_t> take_hex(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (problem != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "00400000-00452000 rw-p …"
std::optional<Mapping> parse_mapping(std::string_view line) {
  Mapping mapping;
  const auto begin = take_hex(line);
  if (!begin || line.empty() || line.front() != '-') {
    return std::nullopt;
  }
  line.remove_prefix(1);
  const auto end = take_hex(line);
  if (!end || line.size() < 5 || *end < *begin) {
    return std::nullopt;
  }
  mapping.begin = *begin;
  mapping.end = *end;
  mapping.writable = line[2] == 'w';
  mapping.is_private = line[4] == 'p';
  return mapping;
}

// A line of smaps below that of the mapping: "Anonymous:   12 kB", "VmFlags: rd wr mr".
void add_detail(std::string_view line, Mapping& mapping) {
  constexpr std::string_view kAnonymous = "Anonymous:";
  constexpr std::string_view kFlags = "VmFlags:";
  if (line.starts_with(kAnonymous)) {
    mapping.has_anonymous = line.find_first_of("123456789") != std::string_view::npos;
  } else if (line.starts_with(kFlags)) {
    line.remove_prefix(kFlags.size());
    for (std::size_t at = 0; at + 3 <= line.size(); at += 3) {
      const std::string_view flag = line.substr(at, 3);
      mapping.locked_or_huge = mapping.locked_or_huge || flag == " lo" || flag == " ht";
    }
  }
}

// Of smaps, or of maps, which lacks the details.
std::vector<Mapping> parse_mappings(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto mapping = parse_mapping(line)) {
      mappings.push_back(*mapping);
    } else if (!mappings.empty()) {
      add_detail(line, mappings.back());
    }
  }
  return mappings;
}

void add_pages(std::vector<PageRun>& runs, std::uint64_t address, std::uint64_t pages) {
  if (!runs.empty() && runs.back().address + runs.back().pages * kProcessPage == address) {
    runs.back().pages += pages;
  } else {
    runs.push_back({address, pages});
  }
}

// What pagemap says of a mapping. False when it cannot be read at all.
bool add_present(int pagemap, const Mapping& mapping, std::vector<PageRun>& runs) {
  const auto system_page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::array<std::uint64_t, 4096> entries{};
  for (std::uint64_t at = mapping.begin; at < mapping.end;) {
    const std::uint64_t wanted =
        std::min<std::uint64_t>(entries.size(), (mapping.end - at) / system_page);
    const ssize_t got = ::pread(pagemap, entries.data(), wanted * sizeof entries[0],
                                static_cast<off_t>(at / system_page * sizeof entries[0]));
    if (got < static_cast<ssize_t>(sizeof entries[0])) {
      // Nothing more once the process has ended.
      return got >= 0;
    }
    const std::size_t count = static_cast<std::size_t>(got) / sizeof entries[0];
    for (std::size_t entry = 0; entry < count; ++entry, at += system_page) {
      if ((entries.at(entry) & (kPresent | kFileOrShared)) == kPresent) {
        add_pages(runs, at, system_page / kProcessPage);
      }
    }
  }
  return true;
}

std::vector<PageRun> find_runs(int folder) {
  auto text = read_text(folder, "smaps");
  if (!text) {
    text = read_text(folder, "maps");
  }
  if (!text) {
    // It has ended.
    return {};
  }
  const std::vector<Mapping> mappings = parse_mappings(*text);
  std::vector<PageRun> runs;
  const Descriptor pagemap(::openat(folder, "pagemap", O_RDONLY | O_CLOEXEC));
  bool readable = pagemap.get() >= 0;
  for (const Mapping& mapping : mappings) {
    if (mapping.is_swappable() && readable) {
      readable = add_present(pagemap.get(), mapping, runs);
    }
  }
  if (readable) {
    return runs;
  }
  runs.clear();
  for (const Mapping& mapping : mappings) {
    if (mapping.is_swappable() && mapping.writable) {
      add_pages(runs, mapping.begin, (mapping.end - mapping.begin) / kProcessPage);
    }
  }
  return runs;
}

// The rest of the line that begins with `key` and a tab, from /proc/PID/status.
std::string status_field(const std::string& status, std::string_view key) {
  std::size_t at = status.find("\n" + std::string(key) + "\t");
  at = at == std::string::npos ? 0 : at + 1;
  if (!std::string_view(status).substr(at).starts_with(key)) {
    return "";
  }
  at += key.size() + 1;
  std::string field = status.substr(at, status.find('\n', at) - at);
  // A process chooses its name; a terminal must not obey it.
  std::replace_if(
      field.begin(), field.end(),
      [](char letter) { return letter != '\t' && (letter < ' ' || letter == '\x7f'); }, '?');
  return field;
}

std::string user_name(uid_t uid) {
  std::array<char, 4096> room{};
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return "user " + std::to_string(uid);
}

Error no_process(pid_t pid) {
  return {Errc::not_found, ESRCH,
          "pid " + std::to_string(pid) + ": there is no such process, or none this user may see"};
}

Error not_allowed(pid_t pid, const std::string& name, const std::string& uids, int problem) {
  uid_t owner = 0;
  std::from_chars(uids.data(), uids.data() + uids.size(), owner);
  std::string message = "pid " + std::to_string(pid) + " (" + name + "): it belongs to " +
                        user_name(owner) + ", and " + user_name(::geteuid()) +
                        " may not read its memory; ";
  if (::geteuid() == 0) {
    message += "the kernel refuses it even root (no CAP_SYS_PTRACE, or a security module)";
  } else if (owner == ::geteuid()) {
    message += "run as root, or see kernel.yama.ptrace_scope";
  } else {
    message += "run as " + (owner == 0 ? "" : user_name(owner) + " or ") + "root";
  }
  return {Errc::system, problem, std::move(message)};
}

}  // namespace

Result<std::unique_ptr<ProcessMemory>> ProcessMemory::open(pid_t pid, const std::string& proc) {
  // All files are opened through this one: another process may get the number later.
  const std::string path = proc + "/" + std::to_string(pid);
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) {
    return errno == ENOENT || errno == ESRCH
               ? no_process(pid)
               : system_error("pid " + std::to_string(pid) + ": " + path, errno);
  }
  const auto status = read_text(folder.get(), "status");
  if (!status) {
    return no_process(pid);
  }
  std::unique_ptr<ProcessMemory> memory(new ProcessMemory);
  memory->pid_ = pid;
  memory->name_ = status_field(*status, "Name:");
  memory->fd_ = ::openat(folder.get(), "mem", O_RDONLY | O_CLOEXEC);
  if (memory->fd_ < 0) {
    if (errno == EACCES || errno == EPERM) {
      return not_allowed(pid, memory->name_, status_field(*status, "Uid:"), EACCES);
    }
    if (errno == ENOENT || errno == ESRCH) {
      // It has ended, or is a thread of the kernel.
      return memory;
    }
    return system_error("pid " + std::to_string(pid) + ": " + path + "/mem", errno);
  }
  memory->runs_ = find_runs(folder.get());
  for (const PageRun& run : memory->runs_) {
    memory->pages_ += run.pages;
  }
  return memory;
}

ProcessMemory::~ProcessMemory() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> into) const noexcept {
  for (std::size_t done = 0; done < kProcessPage;) {
    const ssize_t got =
        ::pread(fd_, into.data() + done, kProcessPage - done, static_cast<off_t>(address + done));
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return false;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return true;
}

Result<std::vector<pid_t>> list_processes(const std::string& proc) {
  std::vector<pid_t> pids;
  std::error_code problem;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(proc, problem); !problem && entry != end;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    pid_t pid = 0;
    const auto [stopped, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong == std::errc() && stopped == name.data() + name.size() && pid > 0) {
      pids.push_back(pid);
    }
  }
  if (problem) {
    return system_error(proc, problem.value());
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace uzram::os
