// Instruction sets are chosen when the module is loaded, so one build serves every machine of an architecture.
#pragma once

#include <cstddef>

// Naming architecture levels there needs GCC 12, choosing at load time needs glibc; elsewhere one version is built.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(KERNELWEAVE_SANITIZE) && __GNUC__ >= 12
#define KERNELWEAVE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNELWEAVE_CLONES
#endif

// A function that only asks for memory has no effect in the compiler's eyes: where it is not inlined, calls vanish.
#if defined(__GNUC__)
#define KERNELWEAVE_INLINE inline __attribute__((always_inline))
#define KERNELWEAVE_RESTRICT __restrict__
#else
#define KERNELWEAVE_INLINE inline
#define KERNELWEAVE_RESTRICT
#endif

namespace kernelweave {

// Ask for the line of an entry that is read soon.
template <class T>
KERNELWEAVE_INLINE void fetch(const T* entry) {
#if defined(__GNUC__)
    __builtin_prefetch(entry, 0, 2);
#else
    (void)entry;
#endif
}

// Ask for the entries of a row that is read soon: rows of a triangle are short, and the processor only guesses the
// continuation of long reads.
template <class T>
KERNELWEAVE_INLINE void fetch_ahead(const T* row, std::size_t length) {
    constexpr std::size_t kLine = 64 / sizeof(T);
    for (std::size_t j = 0; j < length; j += kLine) fetch(row + j);
}

}  // namespace kernelweave
