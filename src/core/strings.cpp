#include "strings.hpp"

#include <algorithm>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

// One text is compared with this many others at a time: steps of one pair wait for each other, those of several do not.
constexpr std::size_t kLanes = 8;
// Fills texts up to the longest of their lanes; no letter of a text is this one.
constexpr std::uint32_t kNone = 0xffffffffU;

// Common subsequences of l letters that end at s[a] and t[b] have their first l - 1 letters anywhere before, and each
// step of the gaps costs a factor of `decay`:
//   ends_l[a, b]  = decay^2 reach_{l-1}[a - 1, b - 1] where s[a] = t[b], else 0, with reach_0 = 1,
//   reach_l[a, b] = sum over a' <= a, b' <= b of decay^(a - a' + b - b') ends_l[a', b'].
// reach_l[a] follows from reach_l[a - 1] and a running sum over row a: nothing is subtracted, so no digits are lost.
// Levels go from the last to the first, so that level l reads level l - 1 as it was before this row.
KERNELWEAVE_INLINE void add_row(std::uint32_t letter, const std::uint32_t* KERNELWEAVE_RESTRICT others,
                                std::size_t width, std::size_t length, double decay, double* KERNELWEAVE_RESTRICT reach,
                                double* KERNELWEAVE_RESTRICT total) {
    const double pair = decay * decay;
    const std::size_t level = width * kLanes;
    for (std::size_t l = length; l >= 1; --l) {
        double before[kLanes], running[kLanes];
        for (std::size_t k = 0; k < kLanes; ++k) {
            before[k] = l == 1 ? 1.0 : 0.0;
            running[k] = 0.0;
        }
        const double* earlier = l == 1 ? nullptr : reach + (l - 2) * level;
        double* own = l == length ? nullptr : reach + (l - 1) * level;
        for (std::size_t b = 0; b < width; ++b) {
            const std::uint32_t* column = others + b * kLanes;
            double ends[kLanes];
            for (std::size_t k = 0; k < kLanes; ++k) ends[k] = column[k] == letter ? pair * before[k] : 0.0;
            if (own == nullptr) {
                for (std::size_t k = 0; k < kLanes; ++k) total[k] += ends[k];
            } else {
                for (std::size_t k = 0; k < kLanes; ++k) {
                    running[k] = decay * running[k] + ends[k];
                    own[b * kLanes + k] = decay * own[b * kLanes + k] + running[k];
                }
            }
            if (earlier != nullptr)
                for (std::size_t k = 0; k < kLanes; ++k) before[k] = earlier[b * kLanes + k];
        }
    }
}

KERNELWEAVE_CLONES
void compare(const std::uint32_t* text, std::size_t size, const std::uint32_t* others, std::size_t width,
             std::size_t length, double decay, double* reach, double* total) {
    for (std::size_t a = 0; a < size; ++a) add_row(text[a], others, width, length, decay, reach, total);
}

// What comparing one text with some others needs.
class Programme {
public:
    Programme(std::size_t length, double decay) : length_(length), decay_(decay) {}

    // out[k] for the texts first .. first + count - 1 of a set, count <= kLanes.
    void values(const Texts& left, std::size_t i, const Texts& right, std::size_t first, std::size_t count,
                double* out) {
        std::size_t width = 0;
        for (std::size_t k = 0; k < count; ++k) width = std::max(width, size(right, first + k));
        others_.assign(width * kLanes, kNone);
        for (std::size_t k = 0; k < count; ++k) {
            const std::uint32_t* letters = right.letters + right.start[first + k];
            for (std::size_t b = 0; b < size(right, first + k); ++b) others_[b * kLanes + k] = letters[b];
        }
        reach_.assign((length_ - 1) * width * kLanes, 0.0);
        double total[kLanes] = {};
        compare(left.letters + left.start[i], size(left, i), others_.data(), width, length_, decay_, reach_.data(),
                total);
        std::copy(total, total + count, out);
    }

private:
    static std::size_t size(const Texts& texts, std::size_t i) {
        return static_cast<std::size_t>(texts.start[i + 1] - texts.start[i]);
    }

    std::size_t length_;
    double decay_;
    std::vector<std::uint32_t> others_;
    std::vector<double> reach_;
};

}  // namespace

void subsequence_values(const Texts& left, const Texts& right, std::size_t length, double decay, bool symmetric,
                        double* out) {
    Programme programme(length, decay);
    for (std::size_t i = 0; i < left.count; ++i) {
        double* row = out + i * right.count;
        const std::size_t stop = symmetric ? i + 1 : right.count;
        for (std::size_t j = 0; j < stop; j += kLanes)
            programme.values(left, i, right, j, std::min(kLanes, stop - j), row + j);
        for (std::size_t j = 0; symmetric && j < stop; ++j) out[j * right.count + i] = row[j];
    }
}

void subsequence_diagonal(const Texts& texts, std::size_t length, double decay, double* out) {
    Programme programme(length, decay);
    for (std::size_t i = 0; i < texts.count; ++i) programme.values(texts, i, texts, i, 1, out + i);
}

}  // namespace kernelweave
