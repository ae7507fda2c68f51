package run;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** {@code run-threads}: platform threads, all of which are there at once. */
final class Starts {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Starts() {}

    /** A point in time: on the clock, and of all processors for this process. */
    private record Moment(long wall, long processor) {
        static Moment now() {
            return new Moment(System.nanoTime(), SYSTEM.getProcessCpuTime());
        }
    }

    static void round(int count) throws InterruptedException {
        var there = new CountDownLatch(count);
        var gate = new CountDownLatch(1);
        var sum = new AtomicLong();
        List<Thread> threads = new ArrayList<>(count);
        Moment begin = Moment.now();
        for (int i = 0; i < count; i++) {
            int number = i;
            var thread = new Thread(() -> {
                there.countDown();
                try {
                    gate.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                sum.addAndGet(number);
            });
            thread.start();
            threads.add(thread);
        }
        there.await();
        report("start", begin, count, count, count);

        begin = Moment.now();
        gate.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        report("end", begin, count, sum.get(), (long) count * (count - 1) / 2);
    }

    private static void report(String metric, Moment begin, int count, long done, long due) {
        Moment end = Moment.now();
        print(metric, (end.wall - begin.wall) / 1e3 / count, done, due);
        print(metric + ", processor", (end.processor - begin.processor) / 1e3 / count, done, due);
    }

    private static void print(String metric, double value, long done, long due) {
        String line = "{\"metric\":\"%s\",\"value\":%.3f,\"unit\":\"µs/thread\",\"done\":%d,\"due\":%d}";
        System.out.println(String.format(Locale.ROOT, line, metric, value, done, due).replace("µ", "\\u00b5"));
    }
}
