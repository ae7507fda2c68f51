import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Writes a dump of this JDK, with threads in several states: java Sample.java FILE. */
public class Sample {
    static final Object LOCK = new Object();

    public static void main(String[] arguments) throws Exception {
        var lock = new ReentrantLock();
        lock.lock();
        Thread.ofVirtual().name("a \"quoted\" / name").start(() -> LockSupport.parkNanos(Long.MAX_VALUE));
        var locker = Thread.ofVirtual().name("locker").start(lock::lock);
        synchronized (LOCK) {
            var blocked = Thread.ofVirtual().name("blocked").start(() -> { synchronized (LOCK) { } });
            try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
                executor.submit(() -> { Thread.sleep(Long.MAX_VALUE); return null; });
                while (locker.getState() != Thread.State.WAITING || blocked.getState() != Thread.State.BLOCKED) {
                    Thread.onSpinWait();
                }
                java.lang.management.ManagementFactory
                        .getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class)
                        .dumpThreads(arguments[0],
                                com.sun.management.HotSpotDiagnosticMXBean.ThreadDumpFormat.JSON);
                System.exit(0);
            }
        }
    }
}
