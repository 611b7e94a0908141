# Compile options that every target of the project shares: linking uzram_options is all it takes.
add_library(uzram_options INTERFACE)
target_include_directories(uzram_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(uzram_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast -fno-strict-aliasing)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(uzram_options INTERFACE -Wthread-safety)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Optimised, g++ 12 takes the assignment of a short literal to a std::string for an overlapping
  # copy (GCC bug 105329).
  target_compile_options(uzram_options INTERFACE -Wno-restrict)
endif()
if(UZRAM_WERROR)
  target_compile_options(uzram_options INTERFACE -Werror)
endif()

# Every x86-64-v2 CPU runs the program; wider vectors are chosen at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(uzram_options INTERFACE -march=x86-64-v2 -mtune=generic)
endif()

if(UZRAM_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(UZRAM_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT UZRAM_SANITIZE STREQUAL "")
  message(FATAL_ERROR "UZRAM_SANITIZE \"${UZRAM_SANITIZE}\": expected address or thread")
endif()
if(UZRAM_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
