package peer;

/**
 * {@code scope}: threads that are joined, or cancelled, together.
 *
 * <p>{@link java.util.concurrent.StructuredTaskScope} is a preview, and a different one in every JDK: who uses it runs
 * on the JDK that compiled it and on no other. It is therefore behind {@link Scopes}, of which the implementation,
 * {@code preview/peer/TaskScopes.java}, is compiled apart.
 */
final class Scope implements Workload {
    /** The version of the JDK whose preview it is. */
    private static final int PREVIEW = 25;

    private final Kind kind;
    private final int two;
    private final int many;
    private final int forks;
    private final int first;
    private final int tasks;

    Scope(Kind kind, Params params) {
        this.kind = kind;
        two = params.count("two");
        many = params.count("many");
        forks = params.count("forks");
        first = params.count("first");
        tasks = params.count("tasks");
        if (forks == 0 || tasks == 0) {
            throw new IllegalArgumentException("forks and tasks must not be 0");
        }
    }

    @Override
    public void round() throws Exception {
        if (Runtime.version().feature() != PREVIEW) {
            String why = "its structured concurrency is not the preview of JDK " + PREVIEW;
            Protocol.skip("two", why);
            Protocol.skip("many", why);
            Protocol.skip("first", why);
            return;
        }
        Scopes scopes = scopes();
        kind.call(() -> scopes.two(two)).report("two", "scope", two, sumBelow(2L * two));
        long all = (long) many * forks;
        kind.call(() -> scopes.many(many, forks)).report("many", "fork", all, sumBelow(all));
        kind.call(() -> scopes.first(first, tasks)).reportMicros("first", "scope", first, (long) first * tasks);
    }

    private Scopes scopes() throws ReflectiveOperationException {
        return (Scopes) Class.forName("peer.TaskScopes").getDeclaredConstructor(Kind.class).newInstance(kind);
    }

    private static long sumBelow(long end) {
        return end * (end - 1) / 2;
    }
}
