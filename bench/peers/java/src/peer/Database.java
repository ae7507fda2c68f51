package peer;

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/** {@code database}: threads that share a few permits. */
final class Database implements Workload {
    private final Kind kind;
    private final int tasks;
    private final int permits;
    private final long millis;

    Database(Kind kind, Params params) {
        this.kind = kind;
        tasks = params.count("tasks");
        permits = params.count("permits");
        millis = params.get("ms");
    }

    @Override
    public void round() throws Exception {
        var pool = new Semaphore(permits);
        var busy = new AtomicInteger();
        Took took = Tasks.run(kind, tasks, Long::sum, _ -> {
            pool.acquire();
            try {
                query(busy);
            } finally {
                pool.release();
            }
            return 1;
        });
        took.reportWall(tasks);
    }

    private void query(AtomicInteger busy) throws InterruptedException {
        int now = busy.incrementAndGet();
        if (now > permits) {
            throw new IllegalStateException("%d threads hold %d permits".formatted(now, permits));
        }
        Thread.sleep(millis);
        busy.decrementAndGet();
    }
}
