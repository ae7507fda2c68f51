package peer;

import java.util.concurrent.ExecutionException;

/**
 * The whole of a peer's {@code main}: finds the workload, and does a round of it for each that the harness asks for.
 */
public final class Peer {
    private Peer() {}

    /** Makes the workload of a name, or gives null if it has no such workload. */
    @FunctionalInterface
    public interface Workloads {
        Workload find(String name, Params params) throws Exception;
    }

    /** Runs until the harness has no more to say. */
    public static void run(String peer, String version, Workloads workloads, String name, String... params) {
        // A thread that fails, for example for lack of memory, must not leave the others waiting for it.
        Thread.setDefaultUncaughtExceptionHandler((_, error) -> Protocol.fail(error.toString(), 1));
        Protocol.peer(peer, version);
        try {
            Workload workload = workloads.find(name, new Params(params));
            if (workload == null) {
                throw new IllegalArgumentException(peer + " has no workload \"" + name + "\"");
            }
            rounds(workload);
            System.exit(0);
        } catch (IllegalArgumentException e) {
            Protocol.fail(e.getMessage(), 2);
        } catch (ExecutionException e) {
            Protocol.fail(e.getCause().toString(), 1);
        } catch (Throwable e) {
            Protocol.fail(e.toString(), 1);
        }
    }

    private static void rounds(Workload workload) throws Exception {
        for (String line = Protocol.nextLine(); line != null; line = Protocol.nextLine()) {
            if (!line.equals("round")) {
                throw new IllegalArgumentException("expected round, got " + line);
            }
            workload.round();
            Protocol.end();
        }
    }

    /** The virtual machine, for the version of a peer. */
    public static String jdk() {
        String vendor = System.getProperty("java.vendor.version", System.getProperty("java.vendor"));
        return "JDK %s (%s)".formatted(System.getProperty("java.version"), vendor.replaceFirst("-.*", ""));
    }
}
