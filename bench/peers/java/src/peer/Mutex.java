package peer;

import java.util.ArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/** {@code mutex}: threads add one to a number under one lock. */
final class Mutex implements Workload {
    private final Kind kind;
    private final int threads;
    private final long ops;

    Mutex(Kind kind, Params params) {
        this.kind = kind;
        threads = params.count("threads");
        ops = params.get("ops");
        if (threads == 0 || ops % threads != 0) {
            throw new IllegalArgumentException("threads does not divide ops");
        }
    }

    @Override
    public void round() throws InterruptedException {
        var ready = new CountDownLatch(threads);
        var gate = new CountDownLatch(1);
        var counter = new Counter();
        var all = new ArrayList<Thread>(threads);
        for (int i = 0; i < threads; i++) {
            all.add(kind.start(() -> {
                ready.countDown();
                Waiting.await(gate);
                counter.add(ops / threads);
            }));
        }
        ready.await();
        long start = System.nanoTime();
        gate.countDown();
        for (Thread thread : all) {
            thread.join();
        }
        Took.since(start, counter.number).report("lock", "lock", ops, ops);
    }

    private static final class Counter {
        private final ReentrantLock lock = new ReentrantLock();
        private long number;

        void add(long times) {
            for (long i = 0; i < times; i++) {
                lock.lock();
                try {
                    number++;
                } finally {
                    lock.unlock();
                }
            }
        }
    }
}
