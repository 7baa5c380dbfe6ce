// Short vectors: arithmetic on 64 bytes at a time, in the widest instructions of the function they are inlined into.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

constexpr std::size_t kLaneBytes = 64;  // one register of AVX-512, two of AVX2, four of SSE or NEON
template <class T>
constexpr std::size_t kLanes = kLaneBytes / sizeof(T);

#if defined(__GNUC__) && !defined(KERNELWEAVE_PLAIN_LANES)
template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
    typedef float type __attribute__((vector_size(kLaneBytes)));
};
template <>
struct VectorOf<double> {
    typedef double type __attribute__((vector_size(kLaneBytes)));
};
template <class T>
using Lanes = typename VectorOf<T>::type;
#else
// For compilers without vector types: the same arithmetic, written as loops.
template <class T>
struct Lanes {
    T values[kLanes<T>] = {};
    T& operator[](std::size_t l) { return values[l]; }
    T operator[](std::size_t l) const { return values[l]; }
};
#define KERNELWEAVE_LANE_OPERATOR(op)                                          \
    template <class T>                                                         \
    inline Lanes<T> operator op(const Lanes<T>& a, const Lanes<T>& b) {        \
        Lanes<T> out;                                                          \
        for (std::size_t l = 0; l < kLanes<T>; ++l) out[l] = a[l] op b[l];     \
        return out;                                                            \
    }                                                                          \
    template <class T>                                                         \
    inline Lanes<T> operator op(const Lanes<T>& a, T b) {                      \
        Lanes<T> out;                                                          \
        for (std::size_t l = 0; l < kLanes<T>; ++l) out[l] = a[l] op b;        \
        return out;                                                            \
    }
KERNELWEAVE_LANE_OPERATOR(+)
KERNELWEAVE_LANE_OPERATOR(-)
KERNELWEAVE_LANE_OPERATOR(*)
KERNELWEAVE_LANE_OPERATOR(/)
#undef KERNELWEAVE_LANE_OPERATOR
#endif

template <class T>
KERNELWEAVE_INLINE Lanes<T> load(const T* from) {
    Lanes<T> out;
    std::memcpy(&out, from, kLaneBytes);
    return out;
}

template <class T>
KERNELWEAVE_INLINE void store(const Lanes<T>& values, T* to) {
    std::memcpy(to, &values, kLaneBytes);
}

template <class T>
KERNELWEAVE_INLINE Lanes<T> all_lanes(T value) {
    return Lanes<T>{} + value;
}

template <class T>
KERNELWEAVE_INLINE Lanes<T> square_root(const Lanes<T>& x) {
    Lanes<T> out;
    for (std::size_t l = 0; l < kLanes<T>; ++l) out[l] = std::sqrt(x[l]);
    return out;
}

// What the exponential needs to know of a type: y + shift has round(y) in its last bits.
template <class T>
struct Exp2;
template <>
struct Exp2<float> {
    using Bits = std::uint32_t;
    static constexpr float shift = 12582912.0F, lowest = -126.0F;  // 1.5 * 2^23
    static constexpr int mantissa = 23;
    static constexpr Bits bias = 127;
    // 2^f - 1 = f (c_0 + c_1 f + ...) for |f| <= 1/2, to 2e-8 of itself.
    static constexpr float series[] = {6.931472028550421e-1F, 2.402264791363012e-1F, 5.550332471162809e-2F,
                                       9.618437357674640e-3F, 1.339887440266574e-3F, 1.535336188319500e-4F};
};
template <>
struct Exp2<double> {
    using Bits = std::uint64_t;
    static constexpr double shift = 6755399441055744.0, lowest = -1022.0;  // 1.5 * 2^52
    static constexpr int mantissa = 52;
    static constexpr Bits bias = 1023;
    // ln(2)^k / k!: what follows the last term is below 1e-17 of the first.
    static constexpr double series[] = {
        6.931471805599453094e-1,  2.402265069591007123e-1,  5.550410866482157995e-2,  9.618129107628477232e-3,
        1.333355814642844342e-3,  1.540353039338160913e-4,  1.525273380405984029e-5,  1.321548679014430949e-6,
        1.017808600923969972e-7,  7.054911620801123330e-9,  4.445538271870811499e-10, 2.567843599348820514e-11,
        1.369148885390412888e-12};
};

// 2^y - 1 for y <= 0, to the last digits of itself: near y = 0 these are far below those of 2^y.
template <class T>
KERNELWEAVE_INLINE Lanes<T> exp2_minus_1(const Lanes<T>& y) {
    Lanes<T> clipped;
    for (std::size_t l = 0; l < kLanes<T>; ++l) clipped[l] = y[l] > Exp2<T>::lowest ? y[l] : Exp2<T>::lowest;
    const Lanes<T> shifted = clipped + Exp2<T>::shift;
    const Lanes<T> f = clipped - (shifted - Exp2<T>::shift);
    constexpr int terms = sizeof(Exp2<T>::series) / sizeof(T);
    Lanes<T> series = all_lanes<T>(Exp2<T>::series[terms - 1]);
    for (int k = terms - 2; k >= 0; --k) series = series * f + Exp2<T>::series[k];
    typename Exp2<T>::Bits bits[kLanes<T>];
    std::memcpy(bits, &shifted, kLaneBytes);
    for (auto& one : bits) one = (one + Exp2<T>::bias) << Exp2<T>::mantissa;
    Lanes<T> power;
    std::memcpy(&power, bits, kLaneBytes);
    return power * (series * f) + (power - T(1));
}

}  // namespace
}  // namespace kernelweave
