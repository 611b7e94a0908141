// Corpora: files of pages, NAME.pages and NAME.pages.zst.
//
// Role: the one reader and writer of such files. A page file holds pages of 4096 bytes one after
// the other and nothing else; with .zst it is compressed by zstd, in one frame or several.
// Errors: name the file: system (unreadable), not_found (a folder without page files),
// invalid_argument (not whole pages), corrupt (zstd cannot unpack it), no_space (more than memory
// allows), exists.
// Threads: one for each file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "uzram/error.hpp"

#include "bench/data.hpp"

namespace uzram::bench {

struct PageFile {
  // The file's name without .pages or .pages.zst.
  std::string name;
  std::string path;
  bool packed = false;
};

// What `path` says it is, from its ending. Errors: invalid_argument.
[[nodiscard]] Result<PageFile> page_file(const std::string& path);

// The page files of the folder `path`, sorted by name, at least one; or the page file `path`.
[[nodiscard]] Result<std::vector<PageFile>> find_page_files(const std::string& path);

// The bytes of a page file, at least one page, at most `most_bytes`.
[[nodiscard]] Result<std::vector<std::byte>> read_page_file(const PageFile& file,
                                                            std::uint64_t most_bytes);

// How many bytes may be read that are then copied into a DataSet, with the memory there is now.
[[nodiscard]] std::uint64_t readable_bytes();

// A set for each page file of `path`, a folder or a file, sorted by name.
[[nodiscard]] Result<DataSets> load_data_sets(const std::string& path);

// Writes a page file that only its owner may read, in one step. REQUIRES: whole pages.
// Errors: exists, unless `overwrite`; system.
[[nodiscard]] Result<void> write_page_file(const PageFile& file, std::span<const std::byte> pages,
                                           bool overwrite);

}  // namespace uzram::bench
