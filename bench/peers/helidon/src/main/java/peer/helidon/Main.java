package peer.helidon;

import io.helidon.common.Version;
import java.util.Arrays;
import peer.Params;
import peer.Peer;
import peer.Workload;

/** The peer {@code helidon}: {@code serve}, {@code gateway} and {@code http-server} over a server that is made for virtual threads. */
final class Main {
    private Main() {}

    public static void main(String[] args) {
        String name = args.length > 0 ? args[0] : "";
        String[] params = args.length > 0 ? Arrays.copyOfRange(args, 1, args.length) : args;
        Peer.run("helidon", "Helidon " + Version.VERSION + ", " + Peer.jdk(), Main::find, name, params);
    }

    private static Workload find(String name, Params params) {
        return switch (name) {
            case "serve" -> Server.serve(params);
            case "gateway" -> Server.gateway(params);
            case "http-server" -> Site.serve(params);
            default -> null;
        };
    }
}
