package peer.helidon;

import io.helidon.common.configurable.Resource;
import io.helidon.common.pki.Keys;
import io.helidon.common.tls.Tls;
import io.helidon.http.HeaderValues;
import io.helidon.http.Status;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import peer.Params;
import peer.Workload;

/** {@code http-server}: the same server, asked for more. It speaks HTTP/2 wherever its module for that is there. */
final class Site {
    private Site() {}

    static Workload serve(Params params) {
        var body = new byte[params.count("body")];
        Arrays.fill(body, (byte) 'x');
        long millis = params.get("delay_ms");
        return Server.start(routing -> route(routing, millis, body), params.get("tls") == 0 ? null : tls());
    }

    private static void route(HttpRouting.Builder routing, long millis, byte[] body) {
        routing.get("/", (_, response) -> {
                    if (millis > 0) {
                        Thread.sleep(millis);
                    }
                    Server.send(response, Status.OK_200, Server.HELLO);
                })
                .get("/body", (_, response) -> response
                        .header(HeaderValues.CONTENT_TYPE_OCTET_STREAM)
                        .send(body))
                .post("/body", Site::count);
    }

    /** Answers with the number of bytes of the body. */
    private static void count(ServerRequest request, ServerResponse response) throws IOException {
        long length = request.content().inputStream().transferTo(OutputStream.nullOutputStream());
        Server.send(response, Status.OK_200, Long.toString(length).getBytes(StandardCharsets.UTF_8));
    }

    private static Tls tls() {
        var keys = Keys.builder()
                .pem(pem -> pem.certChain(file("BENCH_CERTIFICATE")).key(file("BENCH_KEY")))
                .build();
        return Tls.builder().privateKey(keys).privateKeyCertChain(keys).build();
    }

    /** The file that an environment variable names. */
    private static Resource file(String variable) {
        String path = System.getenv(variable);
        if (path == null) {
            throw new IllegalArgumentException("the environment variable " + variable + " is missing");
        }
        return Resource.create(Path.of(path));
    }
}
