#include "os/mounts.hpp"

#include <charconv>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

// "36 35 98:0 /sub /mnt rw,noatime master:1 - ext3 /dev/sda1 rw,errors=continue"
std::optional<Mount> parse_line(std::string_view line) {
  Mount mount;
  const auto id = leading_number(take_until(line, ' '));
  const auto parent = leading_number(take_until(line, ' '));
  std::string_view device = take_until(line, ' ');
  const auto major = leading_number(take_until(device, ':'));
  const auto minor = leading_number(device);
  if (!id || !parent || !major || !minor) {
    return std::nullopt;
  }
  mount.id = *id;
  mount.parent = *parent;
  mount.device = makedev(static_cast<unsigned>(*major), static_cast<unsigned>(*minor));
  mount.root = unescape(take_until(line, ' '));
  mount.point = unescape(take_until(line, ' '));
  const std::size_t optional_end = line.find(" - ");
  if (optional_end == std::string_view::npos) {
    return std::nullopt;
  }
  line.remove_prefix(optional_end + 3);
  mount.type = take_until(line, ' ');
  mount.source = unescape(take_until(line, ' '));
  mount.options = line;
  return mount;
}

}  // namespace

std::string unescape(std::string_view field) {
  constexpr std::size_t kEscaped = 4;
  std::string plain;
  while (!field.empty()) {
    unsigned code = 0;
    if (field.size() >= kEscaped && field[0] == '\\' &&
        std::from_chars(field.data() + 1, field.data() + kEscaped, code, 8).ptr ==
            field.data() + kEscaped) {
      plain += static_cast<char>(code);
      field.remove_prefix(kEscaped);
    } else {
      plain += field[0];
      field.remove_prefix(1);
    }
  }
  return plain;
}

dev_t disk_of(const Mount& mount) {
  if (major(mount.device) != 0) {
    return mount.device;
  }
  struct stat source = {};
  return mount.source.starts_with('/') && ::stat(mount.source.c_str(), &source) == 0 &&
                 S_ISBLK(source.st_mode)
             ? source.st_rdev
             : 0;
}

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  while (!mountinfo.empty()) {
    if (auto mount = parse_line(take_until(mountinfo, '\n'))) {
      mounts.push_back(*std::move(mount));
    }
  }
  return mounts;
}

std::optional<std::uint64_t> mount_id_of(std::string path) {
  while (true) {
    struct statx status = {};
    if (::statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) == 0) {
      if ((status.stx_mask & STATX_MNT_ID) == 0) {
        return std::nullopt;
      }
      return status.stx_mnt_id;
    }
    const std::size_t slash = path.find_last_of('/');
    if (path == "/" || path == ".") {
      return std::nullopt;
    }
    path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }
}

}  // namespace uzram::os
