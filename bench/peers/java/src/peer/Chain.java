package peer;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;

/** {@code chain}: a row of threads, each adds one to what its neighbour sends and passes it on. */
final class Chain implements Workload {
    private final Kind kind;
    private final int threads;

    Chain(Kind kind, Params params) {
        this.kind = kind;
        threads = params.count("threads");
    }

    @Override
    public void round() throws Exception {
        var all = new CountDownLatch(threads);
        var leftmost = new CompletableFuture<Long>();
        long start = System.nanoTime();
        var left = leftmost;
        for (int i = 0; i < threads; i++) {
            left = link(left, all);
        }
        left.complete(0L);
        long number = leftmost.get();
        all.await();
        Took.since(start, number).reportWall(threads);
    }

    /** Spawns the next thread, and returns where it gets its number from. */
    private CompletableFuture<Long> link(CompletableFuture<Long> left, CountDownLatch all) {
        var right = new CompletableFuture<Long>();
        kind.start(() -> {
            left.complete(right.join() + 1);
            all.countDown();
        });
        return right;
    }
}
