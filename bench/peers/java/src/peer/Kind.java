package peer;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadFactory;

/** The kind of thread that is measured. */
enum Kind {
    VIRTUAL(Thread.ofVirtual().factory()),
    PLATFORM(Thread.ofPlatform().factory());

    private final ThreadFactory factory;

    Kind(ThreadFactory factory) {
        this.factory = factory;
    }

    /** What makes the threads. */
    ThreadFactory factory() {
        return factory;
    }

    /** Starts a thread. */
    Thread start(Runnable task) {
        Thread thread = factory.newThread(task);
        thread.start();
        return thread;
    }

    /** An executor with a thread for each task, whose {@code close} waits for them all. */
    ExecutorService executor() {
        return Executors.newThreadPerTaskExecutor(factory);
    }

    /** What a server runs its requests on: platform threads are too dear not to be used again. */
    ExecutorService serverExecutor() {
        return this == VIRTUAL ? Executors.newVirtualThreadPerTaskExecutor() : Executors.newCachedThreadPool();
    }

    /** Does work in a thread of the kind, and returns its result. */
    <T> T call(Callable<T> work) throws Exception {
        var task = new FutureTask<>(work);
        start(task);
        return task.get();
    }

    /**
     * Threads with a stack of this many bytes, or of the default size if that is 0. A virtual thread's stack grows, up to
     * the size of its carrier's, which only the flag {@code -Xss} can change: too many frames are an error there.
     */
    ThreadFactory withStack(long bytes) {
        return this == VIRTUAL ? factory : Thread.ofPlatform().stackSize(bytes).factory();
    }
}
