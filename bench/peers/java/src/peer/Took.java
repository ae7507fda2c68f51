package peer;

/** What work has come to, and how many nanoseconds it took. */
public record Took(long result, long nanos) {
    /** Of work that began then and ends now. */
    public static Took since(long start, long result) {
        return new Took(result, System.nanoTime() - start);
    }

    /** Reports the nanoseconds for each of this many equal pieces of work. */
    public void report(String metric, String piece, double pieces, long due) {
        Protocol.metric(metric, nanos / pieces, "ns/" + piece, result, due);
    }

    /** Reports the microseconds for each of this many equal pieces of work. */
    public void reportMicros(String metric, String piece, double pieces, long due) {
        Protocol.metric(metric, nanos / pieces / 1e3, "µs/" + piece, result, due);
    }

    /** Reports the seconds for all of the work. */
    public void reportWall(long due) {
        Protocol.metric("wall", nanos / 1e9, "s", result, due);
    }
}
