package peer;

/** What a peer does when the harness says {@code round}. It may be asked for any number of rounds. */
@FunctionalInterface
public interface Workload {
    /** Does the work once, and reports its numbers. */
    void round() throws Exception;
}
