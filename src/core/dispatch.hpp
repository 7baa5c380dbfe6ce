// Instruction sets are chosen when the module is loaded, so one build serves every machine of an architecture.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(KERNELWEAVE_SANITIZE)
#define KERNELWEAVE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNELWEAVE_CLONES
#endif
