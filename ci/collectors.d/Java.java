// Threads build lists and check them, collect, and wait for each other.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

class Java {
    record Node(Node next, int number) {}

    static final Object CHANGED = new Object();
    static final long END = System.nanoTime() + 1_000_000_000;

    static boolean over() {
        return System.nanoTime() >= END;
    }

    static Node build(int count) {
        Node first = null;
        for (int number = count; number > 0; number--) first = new Node(first, number);
        return first;
    }

    static void check(Node first) {
        int expected = 1;
        for (Node node = first; node != null; node = node.next, expected++) {
            if (node.number != expected) Runtime.getRuntime().halt(1);
        }
        if (expected != 201) Runtime.getRuntime().halt(1);
    }

    static void work(int seed) {
        for (; !over(); seed++) {
            Node held = build(200);
            try {
                switch (seed % 50) {
                    case 0 -> Thread.sleep(1);
                    case 1 -> {
                        var thread = new Thread(() -> check(build(200)));
                        thread.start();
                        thread.join();
                    }
                    case 2 -> { if (seed % 500 == 2) System.gc(); }
                    case 3 -> { synchronized (CHANGED) { CHANGED.notifyAll(); } }
                    case 4 -> CompletableFuture.runAsync(() -> check(build(200))).join();
                    default -> { byte[] garbage = new byte[10_000]; garbage[seed % 100] = 1; }
                }
            } catch (InterruptedException error) {
                Runtime.getRuntime().halt(2);
            }
            check(held);
        }
    }

    static void waitForChange() {
        while (!over()) {
            Node held = build(200);
            try {
                synchronized (CHANGED) { CHANGED.wait(1000); }
            } catch (InterruptedException error) {
                Runtime.getRuntime().halt(2);
            }
            check(held);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            int seed = i;
            threads.add(new Thread(() -> work(seed)));
        }
        for (int i = 0; i < 8; i++) threads.add(new Thread(Java::waitForChange));
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        System.out.println("ok");
    }
}
