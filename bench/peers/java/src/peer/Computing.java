package peer;

/** {@code cpu-bound} and {@code wait-and-hurry}: threads that compute. */
final class Computing {
    private Computing() {}

    static Workload cpuBound(Kind kind, Params params) {
        var computation = Computation.of(params);
        return () -> computation.run(kind, 0).reportWall(computation.due());
    }

    static Workload waitAndHurry(Kind kind, Params params) {
        long millis = params.get("ms");
        var computation = Computation.of(params);
        return () -> computation.run(kind, millis).reportWall(computation.due());
    }
}
