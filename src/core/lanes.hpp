// Sums and largest entries of rows that are read a line of the cache at a time.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dispatch.hpp"

namespace kernelweave {

constexpr std::size_t kLine = 8;  // doubles in a line

// Eight numbers side by side, in the widest registers there are. Compilers that are asked for a sum over a loop add up
// what their registers hold whenever the loop ends, which for loops over a line is every time.
struct Lanes {
#if defined(__GNUC__)
    typedef double Eight __attribute__((vector_size(8 * kLine)));
    typedef float Single __attribute__((vector_size(4 * kLine)));
    typedef std::int64_t Bits __attribute__((vector_size(8 * kLine)));
    Eight at = {};

    KERNELWEAVE_INLINE void add_products(const Lanes& x, const Lanes& y) { at += x.at * y.at; }
    KERNELWEAVE_INLINE void add_scaled(const Lanes& x, double scale) { at += x.at * scale; }
    KERNELWEAVE_INLINE void take_away(const Lanes& x, double more) { at = at - more - x.at; }
    // Keep the larger absolute value; of NaN either.
    KERNELWEAVE_INLINE void keep_larger(const Lanes& x) {
        const Eight size = reinterpret_cast<Eight>(reinterpret_cast<Bits>(x.at) & INT64_MAX);
        at = size > at ? size : at;
    }
    KERNELWEAVE_INLINE void write(double* line) const { std::memcpy(line, &at, sizeof(at)); }
    KERNELWEAVE_INLINE void write(float* line) const {
        const Single rounded = __builtin_convertvector(at, Single);
        std::memcpy(line, &rounded, sizeof(rounded));
    }
#else
    double at[kLine] = {};

    KERNELWEAVE_INLINE void add_products(const Lanes& x, const Lanes& y) {
        for (std::size_t l = 0; l < kLine; ++l) at[l] += x.at[l] * y.at[l];
    }
    KERNELWEAVE_INLINE void add_scaled(const Lanes& x, double scale) {
        for (std::size_t l = 0; l < kLine; ++l) at[l] += x.at[l] * scale;
    }
    KERNELWEAVE_INLINE void take_away(const Lanes& x, double more) {
        for (std::size_t l = 0; l < kLine; ++l) at[l] = at[l] - more - x.at[l];
    }
    KERNELWEAVE_INLINE void keep_larger(const Lanes& x) {
        for (std::size_t l = 0; l < kLine; ++l) at[l] = std::abs(x.at[l]) > at[l] ? std::abs(x.at[l]) : at[l];
    }
    template <class T>
    KERNELWEAVE_INLINE void write(T* line) const {
        for (std::size_t l = 0; l < kLine; ++l) line[l] = static_cast<T>(at[l]);
    }
#endif
    Lanes() = default;
    KERNELWEAVE_INLINE explicit Lanes(const double* line) { std::memcpy(&at, line, sizeof(at)); }

    KERNELWEAVE_INLINE double sum() const {
        return ((at[0] + at[4]) + (at[1] + at[5])) + ((at[2] + at[6]) + (at[3] + at[7]));
    }
    KERNELWEAVE_INLINE double largest() const {
        double found = at[0];
        for (std::size_t l = 1; l < kLine; ++l) found = at[l] > found ? at[l] : found;
        return found;
    }
};

}  // namespace kernelweave
