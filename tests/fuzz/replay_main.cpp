// The main function of a fuzz target that is built without libFuzzer: runs the target once on each
// file given, or on each file of a folder given.
//
// A target reports a broken property by abort(), so reaching the end is success. An empty folder is
// a failure: it would pass without having tested anything.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* data, std::size_t size);

namespace {

bool replay(const std::filesystem::path& path) {
  std::error_code problem;
  const std::uintmax_t size = std::filesystem::file_size(path, problem);
  std::ifstream file(path, std::ios::binary);
  if (problem || !file) {
    std::fprintf(stderr, "replay: \"%s\": expected a readable file\n", path.c_str());
    return false;
  }
  std::vector<char> content(size);
  file.read(content.data(), static_cast<std::streamsize>(size));
  // Of exactly the input's size, so that AddressSanitizer sees a read beyond its end.
  const std::unique_ptr<std::uint8_t[]> input(new std::uint8_t[size]);
  for (std::size_t i = 0; i < content.size(); ++i) {
    input[i] = static_cast<std::uint8_t>(content[i]);
  }
  // Names the input that aborts.
  std::printf("%s\n", path.filename().c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(input.get(), content.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t replayed = 0;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::filesystem::path> inputs;
    std::error_code problem;
    if (std::filesystem::is_directory(argv[i], problem)) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i], problem)) {
        inputs.push_back(entry.path());
      }
    } else {
      inputs.emplace_back(argv[i]);
    }
    for (const std::filesystem::path& input : inputs) {
      if (!replay(input)) {
        return EXIT_FAILURE;
      }
      ++replayed;
    }
  }
  if (replayed == 0) {
    std::fprintf(stderr, "replay: no inputs: expected files or a folder with files in it\n");
    return EXIT_FAILURE;
  }
  std::printf("%zu inputs replayed\n", replayed);
  return EXIT_SUCCESS;
}
