package peer;

import java.util.concurrent.CountDownLatch;

/** {@code yield}: two threads on one core, each of which gives it to the other again and again. */
final class Yield implements Workload {
    private final Kind kind;
    private final long yields;

    Yield(Kind kind, Params params) {
        this.kind = kind;
        yields = params.get("yields");
    }

    @Override
    public void round() throws InterruptedException {
        var shared = new Shared();
        var one = new Yielder(shared, 1);
        var other = new Yielder(shared, 2);
        Thread[] threads = {kind.start(one), kind.start(other)};
        shared.ready.await();
        long start = System.nanoTime();
        shared.gate.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        long nanos = System.nanoTime() - start;
        new Took(one.calls + other.calls, nanos).report("yield", "yield", 2 * yields, 2 * yields);
        long switches = one.switches + other.switches;
        if (switches > 0) {
            new Took(switches, nanos).report("switch", "switch", switches, switches);
        } else {
            Protocol.skip("switch", "no call let the other run");
        }
    }

    private static final class Shared {
        private final CountDownLatch ready = new CountDownLatch(2);
        private final CountDownLatch gate = new CountDownLatch(1);
        /** Who ran last. */
        private volatile int last;
    }

    private final class Yielder implements Runnable {
        private final Shared shared;
        private final int me;
        private long calls;
        /** Calls after which the other had run. */
        private long switches;

        Yielder(Shared shared, int me) {
            this.shared = shared;
            this.me = me;
        }

        @Override
        public void run() {
            shared.ready.countDown();
            Waiting.await(shared.gate);
            for (long i = 0; i < yields; i++) {
                shared.last = me;
                Thread.yield();
                calls++;
                if (shared.last != me) {
                    switches++;
                }
            }
        }
    }
}
