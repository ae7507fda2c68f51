import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;

/** Checks what packages-check.py does, of threads in Java. */
class PackagesCheck {
    public static void main(String[] arguments) throws Exception {
        int count = 2000;
        CountDownLatch here = new CountDownLatch(count), go = new CountDownLatch(1);
        for (int i = 0; i < count; i++) {
            new Thread(() -> {
                here.countDown();
                try { go.await(); } catch (InterruptedException e) { throw new AssertionError(e); }
            }).start();
        }
        here.await();
        int tasks = Path.of("/proc/self/task").toFile().list().length;
        go.countDown();
        System.out.println(count + " threads waited on " + tasks + " OS threads");
        if (tasks >= 100) System.exit(1);
    }
}
