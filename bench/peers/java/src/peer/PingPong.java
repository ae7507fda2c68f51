package peer;

import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** {@code pingpong}: two threads pass a number to and fro; each adds one to it. */
final class PingPong implements Workload {
    private final Kind kind;
    private final long trips;

    PingPong(Kind kind, Params params) {
        this.kind = kind;
        trips = params.get("trips");
    }

    @Override
    public void round() throws Exception {
        kind.call(this::overQueues).report("channel", "round trip", trips, 2 * trips);
        kind.call(this::overPark).report("park", "round trip", trips, 2 * trips);
    }

    private Took overQueues() throws InterruptedException {
        var there = new SynchronousQueue<Long>();
        var back = new SynchronousQueue<Long>();
        Thread other = kind.start(() -> {
            try {
                for (long i = 0; i < trips; i++) {
                    back.put(there.take() + 1);
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        long number = 0;
        long start = System.nanoTime();
        for (long i = 0; i < trips; i++) {
            there.put(number + 1);
            number = back.take();
        }
        Took took = Took.since(start, number);
        other.join();
        return took;
    }

    /** The number says whose turn it is: this one's when it is even, the other's when it is odd. */
    private Took overPark() throws InterruptedException {
        var number = new AtomicLong();
        Thread here = Thread.currentThread();
        Thread other = kind.start(() -> {
            for (long i = 0; i < trips; i++) {
                while (number.get() % 2 == 0) {
                    LockSupport.park();
                }
                number.incrementAndGet();
                LockSupport.unpark(here);
            }
        });
        long start = System.nanoTime();
        for (long i = 0; i < trips; i++) {
            number.incrementAndGet();
            LockSupport.unpark(other);
            while (number.get() % 2 != 0) {
                LockSupport.park();
            }
        }
        Took took = Took.since(start, number.get());
        other.join();
        return took;
    }
}
