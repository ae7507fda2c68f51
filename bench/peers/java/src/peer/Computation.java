package peer;

/** Tasks that compute: so many, each so many iterations, and what the sum of their results must be. */
record Computation(int tasks, long iterations, long due) {
    static Computation of(Params params) {
        int tasks = params.count("tasks");
        long iterations = params.get("iterations");
        long due = 0;
        for (int i = 0; i < tasks; i++) {
            due += compute(iterations, i);
        }
        return new Computation(tasks, iterations, due);
    }

    /** Runs the tasks, each of which sleeps first; no time at all if {@code millis} is 0. */
    Took run(Kind kind, long millis) throws Exception {
        return Tasks.run(kind, tasks, Long::sum, number -> {
            if (millis > 0) {
                Thread.sleep(millis);
            }
            return compute(iterations, number);
        });
    }

    /** The computation that is the same in every language. */
    static long compute(long iterations, long seed) {
        long x = seed | 1;
        for (long i = 0; i < iterations; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }
}
