package peer;

import java.util.Arrays;

/**
 * The peers {@code jdk-virtual} and {@code jdk-platform}: {@code peer.Main virtual|platform WORKLOAD [key=value]...}
 */
final class Main {
    private Main() {}

    public static void main(String[] args) {
        Kind kind = args.length > 0 && args[0].equals("platform") ? Kind.PLATFORM : Kind.VIRTUAL;
        if (args.length < 2 || !args[0].equals(kind.name().toLowerCase())) {
            Protocol.fail("expected virtual or platform, and a workload", 2);
        }
        String[] params = Arrays.copyOfRange(args, 2, args.length);
        Peer.run("jdk-" + args[0], Peer.jdk(), (name, p) -> find(kind, name, p), args[1], params);
    }

    private static Workload find(Kind kind, String name, Params params) throws Exception {
        return switch (name) {
            case "spawn" -> new Spawn(kind, params);
            case "yield" -> new Yield(kind, params);
            case "pingpong" -> new PingPong(kind, params);
            case "parked" -> new Parked(kind, params);
            case "sleepers" -> Sleeping.sleepers(kind, params);
            case "deep" -> new Deep(kind, params);
            case "cpu-bound" -> Computing.cpuBound(kind, params);
            case "ticker" -> new Ticker(kind, params);
            case "database" -> new Database(kind, params);
            case "skynet" -> new Skynet(kind, params);
            case "chain" -> new Chain(kind, params);
            case "wait-and-hurry" -> Computing.waitAndHurry(kind, params);
            case "mutex" -> new Mutex(kind, params);
            case "timers" -> new Timers(kind, params);
            case "random-numbers" -> Sleeping.randomNumbers(kind, params);
            case "echo" -> new Echo(kind, params);
            case "scope" -> new Scope(kind, params);
            case "serve" -> Server.serve(kind, params);
            case "gateway" -> Server.gateway(kind, params);
            default -> null;
        };
    }
}
