// What a C++20 program does with threads. For ci/programs.
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static thread_local int own = 1;

static int deep(int depth)
{
	volatile char page[4096] = {};
	return depth ? deep(depth - 1) + page[depth] : 0;
}

int main()
{
	std::latch begun(500);
	std::shared_mutex lock;
	std::counting_semaphore<> tokens(10);
	long sum = 0;
	{
		std::vector<std::jthread> threads;
		for (int i = 0; i < 500; i++)
			threads.emplace_back([&, i] {
				begun.arrive_and_wait();
				tokens.acquire();
				std::this_thread::sleep_for(100us);
				tokens.release();
				own += i;
				std::unique_lock held(lock);
				sum += own;
			});
	}
	std::printf("sum %ld, own %d\n", sum, own);

	std::vector<std::future<int>> futures;
	for (int i = 0; i < 100; i++)
		futures.push_back(std::async(std::launch::async, [i] {
			if (i % 3 == 0)
				throw std::runtime_error("third");
			return i;
		}));
	int values = 0, thrown = 0;
	for (auto &future : futures)
		try {
			values += future.get();
		} catch (const std::runtime_error &) {
			thrown++;
		}
	std::printf("values %d, thrown %d\n", values, thrown);

	int rounds = 0;
	std::barrier together(20, [&]() noexcept { rounds++; });
	{
		std::vector<std::jthread> threads;
		for (int i = 0; i < 20; i++)
			threads.emplace_back([&] {
				for (int round = 0; round < 50; round++)
					together.arrive_and_wait();
			});
	}
	std::printf("rounds %d\n", rounds);

	std::mutex mutex;
	std::condition_variable_any moved;
	std::atomic<int> stopped = 0;
	{
		std::vector<std::jthread> threads;
		for (int i = 0; i < 50; i++)
			threads.emplace_back([&](std::stop_token token) {
				std::unique_lock held(mutex);
				moved.wait(held, token, [] { return false; });
				stopped++;
			});
	}
	std::printf("stopped %d\n", stopped.load());

	std::atomic<int> flag = 0;
	std::jthread waker([&] { std::this_thread::sleep_for(1ms); flag = 1; flag.notify_all(); });
	flag.wait(0);
	std::once_flag once;
	int calls = 0;
	{
		std::vector<std::jthread> threads;
		for (int i = 0; i < 20; i++)
			threads.emplace_back([&] { std::call_once(once, [&] { calls++; }); });
	}
	std::printf("calls %d, deep %d\n", calls, std::async(std::launch::async, deep, 1000).get());
	std::fflush(stdout);
	std::thread([] { throw std::runtime_error("uncaught"); }).join();
}
