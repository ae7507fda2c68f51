package peer.fibry;

import eu.lucaventuri.fibry.ActorSystem;
import java.nio.file.Path;
import java.util.Arrays;
import peer.Params;
import peer.Peer;
import peer.Workload;

/**
 * The peer {@code fibry}: the workload {@code actors} with Fibry's actors as they come, each of which has a virtual thread
 * for its whole life. Their mailboxes are not bounded.
 */
final class Main {
    private Main() {}

    public static void main(String[] args) {
        String name = args.length > 0 ? args[0] : "";
        String[] params = args.length > 0 ? Arrays.copyOfRange(args, 1, args.length) : args;
        Peer.run("fibry", "Fibry " + version() + ", " + Peer.jdk(), Main::find, name, params);
    }

    private static Workload find(String name, Params params) {
        return switch (name) {
            case "actor-messages" -> new Messages(params);
            case "actor-asks" -> new Asks(params);
            case "actor-create" -> Lives.create(params);
            case "actor-idle" -> Lives.idle(params);
            case "actor-chain" -> Rows.chain(params);
            case "actor-skynet" -> Rows.skynet(params);
            default -> null;
        };
    }

    /** Only the name of the archive tells it. */
    private static String version() {
        String archive = ActorSystem.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return Path.of(archive).getFileName().toString().replaceFirst("^fibry-", "").replaceFirst("\\.jar$", "");
    }
}
