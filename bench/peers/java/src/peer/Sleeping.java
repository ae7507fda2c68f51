package peer;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.LongAdder;

/** {@code sleepers} and {@code random-numbers}: threads that do little but sleep. */
final class Sleeping {
    private Sleeping() {}

    static Workload sleepers(Kind kind, Params params) {
        int threads = params.count("threads");
        long millis = params.get("ms");
        long due = (long) threads * (threads - 1) / 2;
        return () -> {
            Took took = Tasks.run(kind, threads, Long::sum, number -> {
                Thread.sleep(millis);
                System.out.println(number);
                return number;
            });
            took.reportWall(due);
        };
    }

    static Workload randomNumbers(Kind kind, Params params) {
        int tasks = params.count("tasks");
        long times = params.get("times");
        long millis = params.get("ms");
        // Takes the sums, so that the numbers are drawn for something.
        var sums = new LongAdder();
        return () -> {
            Took took = Tasks.run(kind, tasks, Long::sum, _ -> {
                long sum = 0;
                for (long i = 0; i < times; i++) {
                    Thread.sleep(millis);
                    sum += ThreadLocalRandom.current().nextLong();
                }
                sums.add(sum);
                return times;
            });
            took.reportWall(tasks * times);
        };
    }
}
