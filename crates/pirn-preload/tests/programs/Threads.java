import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

/** What a Java program does with threads. Writes the same on each machine; for ci/programs. */
public class Threads {
    interface Check {
        Object run() throws Exception;
    }

    static void check(String name, Check check) {
        Object result;
        try {
            result = check.run();
        } catch (Throwable e) {
            e.printStackTrace();
            result = e;
        }
        System.out.println(name + ": " + result);
    }

    static List<Thread> start(int count, Runnable body) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(body, "worker-" + i);
            thread.start();
            threads.add(thread);
        }
        return threads;
    }

    static void join(List<Thread> threads) throws InterruptedException {
        for (Thread thread : threads) thread.join();
    }

    static int counter;

    /** Each waits until all have come, in a monitor that all contend for. */
    static Object monitors() throws Exception {
        Object monitor = new Object();
        counter = 0;
        List<Thread> threads = start(1000, () -> {
            synchronized (monitor) {
                counter++;
                monitor.notifyAll();
                while (counter < 1000) {
                    try {
                        monitor.wait();
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }
        });
        join(threads);
        return counter;
    }

    static Object interrupts() throws Exception {
        AtomicInteger interrupted = new AtomicInteger();
        List<Thread> threads = start(50, () -> {
            try {
                Thread.sleep(1_000_000);
            } catch (InterruptedException e) {
                interrupted.incrementAndGet();
            }
        });
        threads.forEach(Thread::interrupt);
        join(threads);
        return interrupted;
    }

    static volatile Object kept;

    static Object garbage() throws Exception {
        AtomicLong sum = new AtomicLong();
        List<Thread> threads = start(8, () -> {
            List<byte[]> some = new ArrayList<>();
            for (int i = 0; i < 20_000; i++) {
                some.add(new byte[2000]);
                if (some.size() > 100) some.clear();
            }
            sum.addAndGet(some.size());
            kept = some;
        });
        for (int i = 0; i < 5; i++) System.gc();
        join(threads);
        return sum;
    }

    static String nothing;

    /** The JVM finds these by its handler of SIGSEGV, once it has compiled the code. */
    static Object nullPointers() throws Exception {
        AtomicInteger caught = new AtomicInteger();
        join(start(4, () -> {
            for (int i = 0; i < 20_000; i++) {
                try {
                    nothing.length();
                } catch (NullPointerException e) {
                    caught.incrementAndGet();
                }
            }
        }));
        return caught;
    }

    static int deeper(int depth) {
        return deeper(depth + 1) + 1;
    }

    /** And these by guard zones in the stack. */
    static Object overflows() throws Exception {
        AtomicInteger caught = new AtomicInteger();
        Runnable body = () -> {
            for (int i = 0; i < 3; i++) {
                try {
                    deeper(0);
                } catch (StackOverflowError e) {
                    caught.incrementAndGet();
                }
            }
        };
        join(start(4, body));
        body.run();
        return caught;
    }

    /** A thread for each connection, and one for each client. */
    static Object sockets() throws Exception {
        int clients = 200;
        AtomicInteger echoed = new AtomicInteger();
        try (ServerSocket listener = new ServerSocket(0, 500, InetAddress.getLoopbackAddress())) {
            Thread acceptor = new Thread(() -> {
                for (int i = 0; i < clients; i++) {
                    try {
                        Socket socket = listener.accept();
                        new Thread(() -> echo(socket)).start();
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    }
                }
            });
            acceptor.start();
            join(start(clients, () -> {
                try (Socket socket =
                        new Socket(InetAddress.getLoopbackAddress(), listener.getLocalPort())) {
                    for (int i = 0; i < 20; i++) {
                        socket.getOutputStream().write(i);
                        if (socket.getInputStream().read() == i) echoed.incrementAndGet();
                    }
                } catch (IOException e) {
                    e.printStackTrace();
                }
            }));
            acceptor.join();
        }
        return echoed;
    }

    static void echo(Socket socket) {
        try (socket) {
            for (int c; (c = socket.getInputStream().read()) >= 0; )
                socket.getOutputStream().write(c);
        } catch (IOException e) {
            e.printStackTrace();
        }
    }

    static String run(String... command) throws Exception {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String text = new String(process.getInputStream().readAllBytes()).trim();
        return text + ", status " + process.waitFor();
    }

    static Object processes() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(10);
        List<Future<String>> results = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            String code = "exit " + i % 3;
            results.add(pool.submit(() -> run("sh", "-c", "echo x; " + code)));
        }
        Map<String, Integer> count = new TreeMap<>();
        for (Future<String> result : results) count.merge(result.get(), 1, Integer::sum);
        pool.shutdown();
        return count + " " + pool.awaitTermination(60, TimeUnit.SECONDS);
    }

    /** The samplers of Flight Recorder suspend threads by signals. */
    static Object flightRecorder() throws Exception {
        Path file = Files.createTempFile("threads", ".jfr");
        Set<String> seen = new TreeSet<>();
        try (jdk.jfr.Recording recording =
                new jdk.jfr.Recording(jdk.jfr.Configuration.getConfiguration("profile"))) {
            recording.start();
            long end = System.nanoTime() + 2_000_000_000L;
            join(start(4, () -> {
                double x = 0;
                while (System.nanoTime() < end) x += Math.sin(x);
                kept = x;
            }));
            recording.stop();
            recording.dump(file);
        }
        for (var event : jdk.jfr.consumer.RecordingFile.readAllEvents(file)) {
            String name = event.getEventType().getName();
            // Before 25, samples begin at the registers that a handler is given: see docs/run.md.
            if (name.equals("jdk.ThreadStart")
                    || name.equals("jdk.ExecutionSample") && Runtime.version().feature() >= 25)
                seen.add(name);
        }
        Files.delete(file);
        return seen;
    }

    /** Another process asks for all stacks: by a signal first, and then over a socket. */
    static Object stacks() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        List<Thread> threads = start(30, () -> {
            try {
                done.await();
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        });
        for (Thread thread : threads)
            while (thread.getState() != Thread.State.WAITING) Thread.sleep(1);
        String jstack = Path.of(System.getProperty("java.home"), "bin", "jstack").toString();
        String text = run(jstack, Long.toString(ProcessHandle.current().pid()));
        done.countDown();
        join(threads);
        long found = text.lines().filter(line -> line.startsWith("\"worker-")).count();
        long inThis = Thread.getAllStackTraces().keySet().size();
        return found + " " + (inThis > 3) + text.substring(text.lastIndexOf(','));
    }

    public static void main(String[] arguments) throws Exception {
        check("monitors", Threads::monitors);
        check("interrupts", Threads::interrupts);
        check("garbage", Threads::garbage);
        check("null pointers", Threads::nullPointers);
        check("overflows", Threads::overflows);
        check("sockets", Threads::sockets);
        check("processes", Threads::processes);
        check("flight recorder", Threads::flightRecorder);
        check("stacks", Threads::stacks);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("the end")));
        System.exit(3);
    }
}
