// Samples that were chosen: those that follow each other are read together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "dispatch.hpp"

namespace kernelweave {
namespace {

// Chosen columns that follow each other: `length` from `start` on, which are chosen as number `place` and following.
struct Run {
    std::size_t start, place, length;
};

inline std::vector<Run> runs_of(const std::size_t* chosen, std::size_t n_chosen) {
    std::vector<Run> runs;
    for (std::size_t c = 0; c < n_chosen; ++c) {
        if (c > 0 && chosen[c] == chosen[c - 1] + 1)
            ++runs.back().length;
        else
            runs.push_back({chosen[c], c, 1});
    }
    return runs;
}

// visit(start, place, length) for the runs of a row as far as number `last`.
template <class Visit>
KERNELWEAVE_INLINE void visit_runs(const Run* runs, std::size_t n_runs, std::size_t last, const Visit& visit) {
    for (const Run* run = runs; run < runs + n_runs && run->place <= last; ++run)
        visit(run->start, run->place, std::min(run->length, last + 1 - run->place));
}

// Ask for the runs of a row, as far as number `last`: the processor guesses the continuation of long reads only.
template <class T>
KERNELWEAVE_INLINE void fetch_runs(const T* row, const std::vector<Run>& runs, std::size_t last) {
    visit_runs(runs.data(), runs.size(), last, [&](std::size_t start, std::size_t, std::size_t length) {
        fetch_ahead(row + start, length);
        fetch(row + start + length - 1);  // it may begin in the middle of a line
    });
}

}  // namespace
}  // namespace kernelweave
