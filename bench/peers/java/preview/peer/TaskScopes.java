package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.StructuredTaskScope;
import java.util.concurrent.StructuredTaskScope.Joiner;
import java.util.concurrent.StructuredTaskScope.Subtask;
import java.util.concurrent.atomic.AtomicLong;

/** {@link StructuredTaskScope}, the preview of JDK 25. */
final class TaskScopes implements Scopes {
    /** How many milliseconds those wait that are to be cancelled, unless they are. */
    private static final long LONG = 10_000;

    private final Kind kind;

    TaskScopes(Kind kind) {
        this.kind = kind;
    }

    /** Virtual threads are what a scope has by default. */
    private <T, R> StructuredTaskScope<T, R> open(Joiner<T, R> joiner) {
        return kind == Kind.VIRTUAL
                ? StructuredTaskScope.open(joiner)
                : StructuredTaskScope.open(joiner, config -> config.withThreadFactory(kind.factory()));
    }

    @Override
    public Took two(int scopes) throws InterruptedException {
        long sum = 0;
        long start = System.nanoTime();
        for (long i = 0; i < scopes; i++) {
            long number = 2 * i;
            try (var scope = open(Joiner.<Long>awaitAllSuccessfulOrThrow())) {
                Subtask<Long> even = scope.fork(() -> number);
                Subtask<Long> odd = scope.fork(() -> number + 1);
                scope.join();
                sum += even.get() + odd.get();
            }
        }
        return Took.since(start, sum);
    }

    @Override
    public Took many(int scopes, int forks) throws InterruptedException {
        long sum = 0;
        long start = System.nanoTime();
        for (int i = 0; i < scopes; i++) {
            List<Subtask<Long>> forked = new ArrayList<>(forks);
            try (var scope = open(Joiner.<Long>awaitAllSuccessfulOrThrow())) {
                for (int j = 0; j < forks; j++) {
                    long number = (long) i * forks + j;
                    forked.add(scope.fork(() -> number));
                }
                scope.join();
                for (Subtask<Long> fork : forked) {
                    sum += fork.get();
                }
            }
        }
        return Took.since(start, sum);
    }

    @Override
    public Took first(int scopes, int tasks) throws InterruptedException {
        var ended = new AtomicLong();
        long start = System.nanoTime();
        for (long i = 0; i < scopes; i++) {
            long number = i;
            var waiting = new CountDownLatch(tasks - 1);
            try (var scope = open(Joiner.<Long>anySuccessfulResultOrThrow())) {
                for (int j = 1; j < tasks; j++) {
                    scope.fork(() -> waitLong(waiting, ended));
                }
                waiting.await();
                scope.fork(() -> number);
                long found = scope.join();
                if (found != number) {
                    throw new IllegalStateException("the first result is %d, not %d".formatted(found, number));
                }
            }
            ended.incrementAndGet();
        }
        return Took.since(start, ended.get());
    }

    private static Long waitLong(CountDownLatch waiting, AtomicLong ended) throws InterruptedException {
        waiting.countDown();
        try {
            Thread.sleep(LONG);
            return Long.MAX_VALUE;
        } catch (InterruptedException e) {
            ended.incrementAndGet();
            throw e;
        }
    }
}
