# What a Python program does with processes, in each way to start them. For ci/programs.
import multiprocessing, threading, time

def work(queue, count):
    got, lock = [], threading.Lock()
    def run(i):
        time.sleep(0.001)
        with lock: got.append(i)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    queue.put(sum(got))

def square(x):
    return x * x

if __name__ == '__main__':
    for method in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context(method)
        sleepers = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(50)]
        for thread in sleepers: thread.start()
        queue = context.Queue()
        processes = [context.Process(target=work, args=(queue, 100)) for _ in range(4)]
        for process in processes: process.start()
        sums = [queue.get() for _ in processes]
        for process in processes: process.join()
        with context.Pool(4) as pool: squares = sum(pool.map(square, range(1000)))
        with context.Manager() as manager:
            shared = manager.dict()
            putters = [threading.Thread(target=shared.__setitem__, args=(i, i)) for i in range(20)]
            for thread in putters: thread.start()
            for thread in putters: thread.join()
            print(method, sums, [process.exitcode for process in processes], squares, len(shared))
