package peer;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** {@code spawn}: short threads, many at once, and one after the other. */
final class Spawn implements Workload {
    private final Kind kind;
    private final int burst;
    private final int inside;
    private final int main;

    Spawn(Kind kind, Params params) {
        this.kind = kind;
        burst = params.count("burst");
        inside = params.count("inside");
        main = params.count("main");
    }

    @Override
    public void round() throws Exception {
        kind.call(this::burst).report("burst", "thread", burst, sumBelow(burst));
        kind.call(() -> joinEach(inside)).report("join inside", "thread", inside, sumBelow(inside));
        joinEach(main).report("join main", "thread", main, sumBelow(main));
    }

    private static long sumBelow(long end) {
        return end * (end - 1) / 2;
    }

    private Took burst() throws InterruptedException {
        var sum = new AtomicLong();
        var all = new CountDownLatch(burst);
        long start = System.nanoTime();
        for (int i = 0; i < burst; i++) {
            long number = i;
            kind.start(() -> {
                sum.addAndGet(number);
                all.countDown();
            });
        }
        all.await();
        return Took.since(start, sum.get());
    }

    private Took joinEach(int threads) throws InterruptedException {
        long sum = 0;
        long start = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            var numbered = new Numbered(i);
            kind.start(numbered).join();
            sum += numbered.result;
        }
        return Took.since(start, sum);
    }

    /** A thread that returns its number. */
    private static final class Numbered implements Runnable {
        private final long number;
        private long result;

        Numbered(long number) {
            this.number = number;
        }

        @Override
        public void run() {
            result = number;
        }
    }
}
