package peer.helidon;

import io.helidon.common.socket.SocketOptions;
import io.helidon.common.tls.Tls;
import io.helidon.http.HeaderValues;
import io.helidon.http.Status;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerResponse;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;
import peer.Params;
import peer.Protocol;
import peer.Workload;

/** The server: a virtual thread for each connection, on which the handler runs too. */
final class Server {
    private static final int BACKLOG = 4096;
    static final byte[] HELLO = "Hello, World!".getBytes(StandardCharsets.UTF_8);

    private Server() {}

    static Workload serve(Params params) {
        long millis = params.get("delay_ms");
        return start(get((_, response) -> {
            if (millis > 0) {
                Thread.sleep(millis);
            }
            send(response, Status.OK_200, HELLO);
        }), null);
    }

    static Workload gateway(Params params) {
        var backend = new Backend(params);
        return start(get((_, response) -> {
            Status status = Status.OK_200;
            String text;
            try {
                text = Long.toString(backend.call());
            } catch (RuntimeException e) {
                status = Status.BAD_GATEWAY_502;
                text = e.toString();
            }
            send(response, status, text.getBytes(StandardCharsets.UTF_8));
        }), null);
    }

    private static Consumer<HttpRouting.Builder> get(Handler handler) {
        return routing -> routing.get("/", handler);
    }

    static void send(ServerResponse response, Status status, byte[] body) {
        response.status(status).header(HeaderValues.CONTENT_TYPE_TEXT_PLAIN).send(body);
    }

    /** Starts a server, over TLS unless that is null, which serves until the process ends. */
    static Workload start(Consumer<HttpRouting.Builder> routing, Tls tls) {
        var config = WebServer.builder()
                .address(InetAddress.getLoopbackAddress())
                .port(0)
                .backlog(BACKLOG)
                .connectionOptions(SocketOptions.builder().tcpNoDelay(true).build())
                .routing(routing);
        if (tls != null) {
            config.tls(tls);
        }
        var server = config.build().start();
        Protocol.listening(server.port());
        return () -> {
            throw new IllegalArgumentException("a server has no rounds");
        };
    }
}
