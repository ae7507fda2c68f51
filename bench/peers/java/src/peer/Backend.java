package peer;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/**
 * What a gateway calls. The client's pool of connections is unlimited, and keeps them alive for 30 s, unless
 * {@code jdk.httpclient.connectionPoolSize} and {@code jdk.httpclient.keepalive.timeout} say otherwise.
 */
final class Backend {
    private static final int CALLS = 3;

    private final HttpClient client;
    private final HttpRequest request;

    Backend(Kind kind, Params params) {
        URI uri = URI.create("http://127.0.0.1:" + params.get("backend") + "/");
        request = HttpRequest.newBuilder(uri).build();
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).executor(kind.serverExecutor()).build();
    }

    /** Calls it three times, one after the other, and returns the sum of the lengths of the bodies. */
    long call() throws IOException, InterruptedException {
        long length = 0;
        for (int i = 0; i < CALLS; i++) {
            var response = client.send(request, BodyHandlers.ofByteArray());
            if (response.statusCode() != 200) {
                throw new IOException("the backend answers " + response.statusCode());
            }
            length += response.body().length;
        }
        return length;
    }
}
