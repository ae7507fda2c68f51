import java.util.Set;
import java.util.UUID;

/** Threads that sleep for an hour, and what differs from run to run natively. */
public class Sleeps {
    public static void main(String[] arguments) throws InterruptedException {
        long begin = System.nanoTime();
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(Sleeps::sleep);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println((System.nanoTime() - begin) / 1_000_000_000 + " s");
        System.out.println(UUID.randomUUID() + " " + Set.of("a", "b", "c", "d"));
    }

    private static void sleep() {
        try {
            Thread.sleep(3_600_000);
        } catch (InterruptedException unexpected) {
            throw new IllegalStateException(unexpected);
        }
        System.out.println(Math.random() + " " + new Object().hashCode());
    }
}
