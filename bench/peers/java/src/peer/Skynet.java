package peer;

/** {@code skynet}: a tree of threads, ten under each, adds up numbers. */
final class Skynet implements Workload {
    private static final int BRANCHES = 10;

    private final Kind kind;
    private final long threads;

    Skynet(Kind kind, Params params) {
        this.kind = kind;
        threads = params.get("threads");
        long rest = threads;
        while (rest > 1 && rest % BRANCHES == 0) {
            rest /= BRANCHES;
        }
        if (rest != 1) {
            throw new IllegalArgumentException("threads is no power of ten: " + threads);
        }
    }

    @Override
    public void round() throws InterruptedException {
        var root = new Node(0, threads);
        long start = System.nanoTime();
        kind.start(root).join();
        Took.since(start, root.sum).reportWall(threads * (threads - 1) / 2);
    }

    /** A thread with a range of numbers, whose sum is there once it has been joined. */
    private final class Node implements Runnable {
        private final long first;
        private final long size;
        private long sum;

        Node(long first, long size) {
            this.first = first;
            this.size = size;
        }

        @Override
        public void run() {
            if (size == 1) {
                sum = first;
                return;
            }
            var children = new Node[BRANCHES];
            var running = new Thread[BRANCHES];
            for (int i = 0; i < BRANCHES; i++) {
                children[i] = new Node(first + i * (size / BRANCHES), size / BRANCHES);
                running[i] = kind.start(children[i]);
            }
            for (int i = 0; i < BRANCHES; i++) {
                Waiting.join(running[i]);
                sum += children[i].sum;
            }
        }
    }
}
