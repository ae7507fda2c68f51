package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** {@code deep}: threads wait at the bottom of many calls, and a ticker watches how long it is kept from running. */
final class Deep implements Workload {
    private final Kind kind;
    private final int threads;
    private final long depth;
    private final ThreadFactory factory;
    private final long due;

    Deep(Kind kind, Params params) throws Exception {
        this.kind = kind;
        threads = params.count("threads");
        depth = params.get("depth");
        factory = kind.withStack(stackFor(depth));
        due = due();
    }

    /** Bytes of stack for this many frames, 0 for the default of 1 MiB. An interpreted frame takes up to 300 bytes. */
    private static long stackFor(long depth) {
        long needed = depth * 300 + (64 << 10);
        return needed <= 1 << 20 ? 0 : 2 * Long.highestOneBit(needed);
    }

    private long due() throws Exception {
        var sum = new FutureTask<>(() -> {
            var descent = new Descent(() -> {});
            long all = 0;
            for (int i = 0; i < threads; i++) {
                all += descent.descend(depth, i);
            }
            return all;
        });
        // Not on the main thread, whose stack may be too small.
        Thread.ofPlatform().stackSize(stackFor(depth)).start(sum);
        return sum.get();
    }

    @Override
    public void round() throws Exception {
        var divers = new Divers();
        var watch = new Watch(kind);
        Took sink = divers.sink();
        long pause = watch.stop();

        if (Protocol.at("deep", threads) > 0) {
            throw new IllegalArgumentException("deep does not do more");
        }

        watch = new Watch(kind);
        Took wake = divers.wake();
        pause = Math.max(pause, watch.stop());

        Protocol.metric("sink", sink.nanos() / 1e3 / threads, "µs/thread", sink.result(), threads);
        Protocol.metric("wake", wake.nanos() / 1e3 / threads, "µs/thread", wake.result(), due);
        Protocol.metric("pause", pause / 1e6, "ms", sink.result(), threads);
    }

    private final class Divers {
        private final List<Thread> all = new ArrayList<>(threads);
        private final CountDownLatch waiting = new CountDownLatch(threads);
        private final AtomicLong sum = new AtomicLong();
        private final Descent descent = new Descent(this::bottom);
        private volatile boolean wake;

        private void bottom() {
            waiting.countDown();
            while (!wake) {
                LockSupport.park();
            }
        }

        Took sink() throws InterruptedException {
            long start = System.nanoTime();
            for (int i = 0; i < threads; i++) {
                long number = i;
                Thread thread = factory.newThread(() -> sum.addAndGet(descent.descend(depth, number)));
                thread.start();
                all.add(thread);
            }
            waiting.await();
            return Took.since(start, threads - waiting.getCount());
        }

        Took wake() throws InterruptedException {
            long start = System.nanoTime();
            wake = true;
            all.forEach(LockSupport::unpark);
            for (Thread thread : all) {
                thread.join();
            }
            return Took.since(start, sum.get());
        }
    }

    /** Calls that go down until {@code depth} is zero, and have work left to do on the way back. */
    private record Descent(Runnable bottom) {
        long descend(long depth, long x) {
            if (depth == 0) {
                bottom.run();
                return x;
            }
            long a = x * 6364136223846793005L + depth;
            long b = a ^ (a >>> 29);
            long c = b * 3 + depth;
            long d = c ^ (c << 7);
            long r = descend(depth - 1, d);
            return ((((r ^ a) * 31 + b) ^ c) * 31) + d;
        }
    }

    /**
     * A thread that sleeps a millisecond again and again. It does not run while the peer stands still, so that this is
     * no lateness.
     */
    private static final class Watch {
        private static final long PERIOD = 1_000_000;
        private final Thread thread;
        private final long start = System.nanoTime();
        private volatile boolean stopping;
        private long longest;

        Watch(Kind kind) {
            thread = kind.start(this::run);
        }

        private void run() {
            long last = start;
            for (boolean stop = false; !stop;) {
                stop = stopping;
                Waiting.sleep(1);
                long now = System.nanoTime();
                longest = Math.max(longest, now - last - PERIOD);
                last = now;
            }
        }

        /** Waits for another waking, and returns the longest lateness in nanoseconds. */
        long stop() throws InterruptedException {
            stopping = true;
            thread.join();
            return longest;
        }
    }
}
