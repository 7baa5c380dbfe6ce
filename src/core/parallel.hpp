// Run independent tasks on a few threads; the first task runs on the caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace kernelweave {

template <class Task>
void parallel_for(std::size_t n_tasks, int n_threads, const Task& task) {
    const std::size_t workers = n_threads < 1 ? 1 : static_cast<std::size_t>(n_threads);
    if (workers == 1 || n_tasks < 2) {
        for (std::size_t t = 0; t < n_tasks; ++t) task(t);
        return;
    }
    std::atomic<std::size_t> next{0};
    auto work = [&] {
        for (std::size_t t = next.fetch_add(1); t < n_tasks; t = next.fetch_add(1)) task(t);
    };
    std::vector<std::thread> crew;
    for (std::size_t w = 1; w < workers && w < n_tasks; ++w) crew.emplace_back(work);
    work();
    for (auto& member : crew) member.join();
}

}  // namespace kernelweave
