// Instruction sets are chosen when the module is loaded, so one build serves every processor of an architecture.
#pragma once

// A loop is written once, as a template that is inlined, and named once per type by a function with this attribute:
// dot and dot_row, gains and gains_row.
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
