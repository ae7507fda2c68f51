package peer;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

/**
 * {@code serve} and {@code gateway}, over the JDK's own server. One thread of it waits for requests on all connections;
 * each request gets a thread of the kind.
 */
final class Server {
    private static final int BACKLOG = 4096;
    private static final byte[] HELLO = "Hello, World!".getBytes(StandardCharsets.UTF_8);

    private Server() {}

    static Workload serve(Kind kind, Params params) throws IOException {
        long millis = params.get("delay_ms");
        return start(kind, exchange -> {
            if (millis > 0) {
                Waiting.sleep(millis);
            }
            send(exchange, 200, HELLO);
        });
    }

    static Workload gateway(Kind kind, Params params) throws IOException {
        var backend = new Backend(kind, params);
        return start(kind, exchange -> {
            int status = 200;
            String text;
            try {
                text = Long.toString(backend.call());
            } catch (IOException | InterruptedException e) {
                status = 502;
                text = e.toString();
            }
            send(exchange, status, text.getBytes(StandardCharsets.UTF_8));
        });
    }

    private static void send(HttpExchange exchange, int status, byte[] body) throws IOException {
        // The server closes the connection if the request says so, but does not tell the client, as HTTP wants it.
        if ("close".equalsIgnoreCase(exchange.getRequestHeaders().getFirst("Connection"))) {
            exchange.getResponseHeaders().set("Connection", "close");
        }
        exchange.getResponseHeaders().set("Content-Type", "text/plain");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
    }

    /** Starts a server, which serves until the process ends. */
    private static Workload start(Kind kind, HttpHandler handler) throws IOException {
        // Head and body are two writes, of which the second would wait 40 ms for the acknowledgement of the first.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        // It would close connections that are between two requests if there are more than 200 of them.
        System.setProperty("sun.net.httpserver.maxIdleConnections", Integer.toString(Integer.MAX_VALUE));

        var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), BACKLOG);
        server.setExecutor(kind.serverExecutor());
        server.createContext("/", exchange -> {
            try (exchange) {
                handler.handle(exchange);
            }
        });
        server.start();
        Protocol.listening(server.getAddress().getPort());
        return () -> {
            throw new IllegalArgumentException("a server has no rounds");
        };
    }
}
