package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** {@code parked}: threads that only wait, to be looked at from outside, and are then woken. */
final class Parked implements Workload {
    private final Kind kind;
    private final int step;

    Parked(Kind kind, Params params) {
        this.kind = kind;
        step = params.count("step");
    }

    @Override
    public void round() throws Exception {
        var crowd = new Crowd();
        long spawning = 0;
        for (int more = step; more > 0;) {
            spawning += crowd.grow(more);
            System.gc();
            more = Protocol.at("parked", crowd.threads.size());
        }
        int count = crowd.threads.size();
        new Took(count, spawning).report("spawn", "thread", count, count);
        crowd.wake().report("wake", "thread", count, count);
    }

    private final class Crowd {
        private final List<Thread> threads = new ArrayList<>();
        private final AtomicLong woken = new AtomicLong();
        private volatile boolean wake;

        /** Spawns so many more, and returns how many nanoseconds it took until they waited. */
        long grow(int more) throws InterruptedException {
            long start = System.nanoTime();
            var waiting = new CountDownLatch(more);
            Runnable task = () -> {
                waiting.countDown();
                while (!wake) {
                    LockSupport.park();
                }
                woken.incrementAndGet();
            };
            for (int i = 0; i < more; i++) {
                threads.add(kind.start(task));
            }
            waiting.await();
            return System.nanoTime() - start;
        }

        Took wake() throws InterruptedException {
            long start = System.nanoTime();
            wake = true;
            threads.forEach(LockSupport::unpark);
            for (Thread thread : threads) {
                thread.join();
            }
            return Took.since(start, woken.get());
        }
    }
}
