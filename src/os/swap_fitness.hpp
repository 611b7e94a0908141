// What a process needs that serves swap.
//
// Role: for a server one of whose devices may be used as swap. While the kernel reclaims memory it
// waits for that server; so the server must not wait for memory itself, nor be killed for some, nor
// hold on to disks of the host. Memory for what is stored is a matter of the engine
// (DeviceOptions::reserve_bytes).
// Order: own_mount_namespace before the process starts threads, mark_io_flusher before those that
// touch a device, lock_memory once libraries are loaded. make_swap_fit does all in that order.
// Errors: each says what was tried, why it failed and what to do. Whatever succeeded stays.
// Threads: one, as the process starts.
// Cost: milliseconds. The locked program is a few MiB; what is mapped later costs what is touched.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "uzram/error.hpp"

namespace uzram::os {

// Keeps in memory what the process has there now and whatever it takes later, each page from its
// first use on, and takes code and data of the program and its libraries at once. Memory files are
// locked where they are mapped; what is given back by punching holes still goes (madvise refuses
// MADV_DONTNEED and MADV_REMOVE). Children of fork begin unlocked. Errors: system; unsupported when
// the kernel, before Linux 5.14, cannot take pages ahead.
Result<void> lock_memory();
// Whether lock_memory has succeeded in this process.
[[nodiscard]] bool memory_is_locked() noexcept;

// Takes the next kTakenStack bytes of the calling thread's stack, which it would otherwise take page
// by page the first time it needs them. For threads of a process that has locked its memory.
inline constexpr std::size_t kTakenStack = std::size_t{128} << 10;
void take_stack() noexcept;

// Memory that the kernel takes for the calling thread, and for threads and children that it starts
// later, is not looked for by writing pages out, and is refused where there is none instead of having
// something killed. Errors: system (it needs CAP_SYS_RESOURCE); unsupported before Linux 5.6.
Result<void> mark_io_flusher();
// Whether the calling thread is so marked.
[[nodiscard]] bool is_io_flusher() noexcept;

// The kernel never ends this process to make memory free; children inherit that. Errors: system (it
// needs CAP_SYS_RESOURCE).
Result<void> protect_from_oom_killer();

// Gives the process mounts of its own, which neither follow nor hold up those of the host, and
// detaches those of block devices: a file system that the host unmounts is then gone, and one on a
// disk of this very process is never mounted here, where the end of the process would have to write
// to it. Kept are "/", mounts of the same device, those that hold files the process has mapped, and
// those that hold one of `needed`, or would. A current folder on another one becomes "/".
// REQUIRES: the process has one thread. Errors: invalid_argument when it has more; system (it needs
// CAP_SYS_ADMIN), also when single mounts stay.
Result<void> own_mount_namespace(std::span<const std::string> needed);

// All of it, for a process with one thread. Returns what could not be had; empty when all could.
[[nodiscard]] std::vector<Error> make_swap_fit(std::span<const std::string> needed);

}  // namespace uzram::os
