package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** {@code timers}: many threads wait with a time limit and are woken before it; two more take turns meanwhile. */
final class Timers implements Workload {
    private static final long LIMIT = TimeUnit.SECONDS.toNanos(600);

    private final Kind kind;
    private final int threads;
    private final long waits;

    Timers(Kind kind, Params params) {
        this.kind = kind;
        threads = params.count("threads");
        waits = params.get("waits");
    }

    @Override
    public void round() throws Exception {
        var crowd = new Crowd();
        crowd.arm().report("arm", "timer", threads, threads);
        kind.call(this::takeTurns).report("rearm", "timed wait", 2 * waits, 2 * waits);
        crowd.cancel().report("cancel", "timer", threads, threads);
    }

    /** Waits until something holds, of which another thread tells by unparking this one. False if it took too long. */
    private static boolean await(BooleanSupplier condition, long nanos) {
        long deadline = System.nanoTime() + nanos;
        while (!condition.getAsBoolean()) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            LockSupport.parkNanos(left);
        }
        return true;
    }

    private final class Crowd {
        private final List<Thread> all = new ArrayList<>(threads);
        private final AtomicLong woken = new AtomicLong();
        private volatile boolean wake;

        Took arm() throws InterruptedException {
            var waiting = new CountDownLatch(threads);
            long start = System.nanoTime();
            for (int i = 0; i < threads; i++) {
                long limit = LIMIT + TimeUnit.MILLISECONDS.toNanos(i % 1000);
                all.add(kind.start(() -> {
                    waiting.countDown();
                    if (await(() -> wake, limit)) {
                        woken.incrementAndGet();
                    }
                }));
            }
            waiting.await();
            return Took.since(start, threads - waiting.getCount());
        }

        Took cancel() throws InterruptedException {
            long start = System.nanoTime();
            wake = true;
            all.forEach(LockSupport::unpark);
            for (Thread thread : all) {
                thread.join();
            }
            return Took.since(start, woken.get());
        }
    }

    /** The number of turns taken says whose turn it is: this one's when it is even, the other's when it is odd. */
    private Took takeTurns() throws InterruptedException {
        var turns = new AtomicLong();
        Thread here = Thread.currentThread();
        Thread other = kind.start(() -> takeTurns(turns, 1, here));
        long start = System.nanoTime();
        takeTurns(turns, 0, other);
        other.join();
        return Took.since(start, turns.get());
    }

    private void takeTurns(AtomicLong turns, int mine, Thread other) {
        for (long i = 0; i < waits; i++) {
            if (!await(() -> turns.get() % 2 == mine, LIMIT)) {
                throw new IllegalStateException("the other did not take its turn");
            }
            turns.incrementAndGet();
            LockSupport.unpark(other);
        }
    }
}
