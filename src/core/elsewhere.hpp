// A thread that begins on another core than the one it is started from.
//
// Left to itself Linux often puts a fresh thread behind the one that has made it, above all in a process that has just
// slept, and moves it away after a millisecond: a short pass is then over before its second thread begins.
#pragma once

#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__linux__) && defined(__GLIBC__)
#include <pthread.h>
#include <sched.h>
#define KERNELWEAVE_PLACES_THREADS
#endif

namespace kernelweave {

#if defined(KERNELWEAVE_PLACES_THREADS)

class Elsewhere {
public:
    Elsewhere() = default;
    // Begin `work`, which must not throw; std::system_error if the system has no thread to give.
    template <class Work>
    explicit Elsewhere(Work work) {
        struct Job {
            Work work;
            cpu_set_t allowed;
            bool placed;
        };
        auto job = std::make_unique<Job>(Job{std::move(work), {}, false});
        const auto run = [](void* given) -> void* {
            const std::unique_ptr<Job> own(static_cast<Job*>(given));
            // Only where it begins is chosen here: from now on it may be moved like any other.
            if (own->placed) (void)pthread_setaffinity_np(pthread_self(), sizeof(own->allowed), &own->allowed);
            own->work();
            return nullptr;
        };
        pthread_attr_t attributes;
        const bool placed =
            sched_getaffinity(0, sizeof(job->allowed), &job->allowed) == 0 && place(job->allowed, attributes);
        job->placed = placed;
        // From the moment it is there the job is the thread's, which may be through with it before this returns.
        int failure = pthread_create(&thread_, placed ? &attributes : nullptr, run, job.get());
        if (failure == 0) (void)job.release();
        if (placed) (void)pthread_attr_destroy(&attributes);
        if (failure != 0 && placed) {  // a core may have been taken away meanwhile
            job->placed = false;
            failure = pthread_create(&thread_, nullptr, run, job.get());
            if (failure == 0) (void)job.release();
        }
        if (failure != 0) throw std::system_error(failure, std::generic_category());
        joinable_ = true;
    }
    Elsewhere(Elsewhere&& other) noexcept : thread_(other.thread_), joinable_(std::exchange(other.joinable_, false)) {}
    Elsewhere& operator=(Elsewhere&& other) noexcept {
        join();
        thread_ = other.thread_;
        joinable_ = std::exchange(other.joinable_, false);
        return *this;
    }
    ~Elsewhere() { join(); }

    bool joinable() const { return joinable_; }

    // Wait until the work is done, if there is any.
    void join() {
        if (std::exchange(joinable_, false)) (void)pthread_join(thread_, nullptr);
    }

private:
    // Attributes of a thread that begins on an allowed core that is not this one; false if there is none.
    static bool place(cpu_set_t others, pthread_attr_t& attributes) {
        const int here = sched_getcpu();
        if (here < 0 || here >= CPU_SETSIZE) return false;
        CPU_CLR(here, &others);
        if (CPU_COUNT(&others) == 0 || pthread_attr_init(&attributes) != 0) return false;
        if (pthread_attr_setaffinity_np(&attributes, sizeof(others), &others) == 0) return true;
        (void)pthread_attr_destroy(&attributes);
        return false;
    }

    pthread_t thread_{};
    bool joinable_ = false;
};

#else

using Elsewhere = std::thread;

#endif

}  // namespace kernelweave
