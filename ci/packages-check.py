"""Checks, for ci/packages, that this program's threads are virtual: 2,000 of them that wait at once
are few OS threads."""

import os
import threading

COUNT = 2000
here, go = threading.Semaphore(0), threading.Event()


def wait():
    here.release()
    go.wait()


threads = [threading.Thread(target=wait) for _ in range(COUNT)]
for thread in threads:
    thread.start()
for _ in threads:
    here.acquire()
tasks = len(os.listdir("/proc/self/task"))
go.set()
for thread in threads:
    thread.join()
print(f"{COUNT} threads waited on {tasks} OS threads")
assert tasks < 100
