package peer;

import java.util.ArrayList;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.function.LongBinaryOperator;

/** A number of tasks, each in a thread of its own. */
final class Tasks {
    private Tasks() {}

    /** A task, given its number. */
    @FunctionalInterface
    interface Task {
        long run(long number) throws Exception;
    }

    /** Runs the tasks 0 … {@code count}−1 and puts their results together: from the first spawn to the last join. */
    static Took run(Kind kind, int count, LongBinaryOperator together, Task task) throws Exception {
        long start = System.nanoTime();
        long result = 0;
        try (var executor = kind.executor()) {
            var futures = new ArrayList<Future<Long>>(count);
            for (int i = 0; i < count; i++) {
                long number = i;
                Callable<Long> call = () -> task.run(number);
                futures.add(executor.submit(call));
            }
            for (var future : futures) {
                result = together.applyAsLong(result, future.get());
            }
        }
        return Took.since(start, result);
    }
}
