// Run independent tasks on a few threads; the caller is one of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kernelweave {

// Every thread is joined and the first exception of a task is rethrown; if a thread cannot be started, the ones
// that run do its share.
template <class Task>
void parallel_for(std::size_t n_tasks, int n_threads, const Task& task) {
    const std::size_t workers = n_threads < 1 ? 1 : static_cast<std::size_t>(n_threads);
    if (workers == 1 || n_tasks < 2) {
        for (std::size_t t = 0; t < n_tasks; ++t) task(t);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex guard;
    auto work = [&]() noexcept {
        try {
            for (std::size_t t = next.fetch_add(1); t < n_tasks; t = next.fetch_add(1)) task(t);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(guard);
            if (!failure) failure = std::current_exception();
            next.store(n_tasks);
        }
    };
    std::vector<std::thread> others;
    try {
        others.reserve(workers);
        for (std::size_t w = 1; w < workers && w < n_tasks; ++w) others.emplace_back(work);
    } catch (...) {
        // The system has no more threads, or no more memory, to give: a thread that runs must not be left behind.
    }
    work();
    for (auto& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace kernelweave
