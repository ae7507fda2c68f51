package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** {@code ticker}: is a thread that wakes every millisecond late while others compute? */
final class Ticker implements Workload {
    private static final long PERIOD = TimeUnit.MILLISECONDS.toNanos(1);
    private static final int WARM_UP = 10;

    private final Kind kind;
    private final Computation computation;

    Ticker(Kind kind, Params params) {
        this.kind = kind;
        computation = Computation.of(params);
    }

    @Override
    public void round() throws Exception {
        var ticks = new Ticks();
        Thread thread = kind.start(ticks);
        ticks.warm.await();
        long spawned = System.nanoTime() - ticks.start;
        long done = computation.run(kind, 0).result();
        ticks.stopping = true;
        thread.join();

        long before = Math.ceilDiv(spawned, PERIOD) - 1;
        long[] lateness = ticks.lateness.stream().skip(before).mapToLong(Long::longValue).sorted().toArray();
        report("p50", lateness, 50, done);
        report("p99", lateness, 99, done);
        report("max", lateness, 100, done);
    }

    /** The least lateness that so many in a hundred do not exceed. */
    private void report(String metric, long[] sorted, int percent, long done) {
        int rank = Math.ceilDiv(sorted.length * percent, 100);
        Protocol.metric(metric, sorted[rank - 1] / 1e6, "ms", done, computation.due());
    }

    private static final class Ticks implements Runnable {
        private final CountDownLatch warm = new CountDownLatch(WARM_UP);
        /** Of the ticks 1, 2, …, tick i being due at i periods from the start. */
        private final List<Long> lateness = new ArrayList<>();
        private final long start = System.nanoTime();
        private volatile boolean stopping;

        @Override
        public void run() {
            for (boolean stop = false; !stop;) {
                stop = stopping;
                try {
                    tick();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        }

        private void tick() throws InterruptedException {
            long now = System.nanoTime() - start;
            long notPast = Math.ceilDiv(now, PERIOD) * PERIOD;
            TimeUnit.NANOSECONDS.sleep(Math.max(notPast, due()) - now);
            now = System.nanoTime() - start;
            while (due() <= now) {
                lateness.add(now - due());
                warm.countDown();
            }
        }

        /** When the next tick is due that has not been counted. */
        private long due() {
            return (lateness.size() + 1) * PERIOD;
        }
    }
}
