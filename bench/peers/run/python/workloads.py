"""The workloads: each of these does a round."""

import queue
import threading
import time

from protocol import now, report, since


def sleepers(threads, ms):
    """Threads that sleep, then count themselves."""
    lock = threading.Lock()
    total = 0

    def sleeper(number):
        nonlocal total
        time.sleep(ms / 1000)
        with lock:
            total += number

    start = now()
    all_threads = [threading.Thread(target=sleeper, args=(n,)) for n in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    report("wall", since(start), "s", total, sum(range(threads)))


def ping_pong(trips):
    """Two threads pass a number to and fro over two queues."""
    there, back = queue.Queue(), queue.Queue()
    last = []

    def ping():
        number = 0
        for _ in range(trips):
            there.put(number + 1)
            number = back.get()
        last.append(number)

    def pong():
        for _ in range(trips):
            back.put(there.get() + 1)

    threads = [threading.Thread(target=ping), threading.Thread(target=pong)]
    start = now()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report("round trip", since(start), "µs/round trip", last[0], 2 * trips, 1e6 / trips)
