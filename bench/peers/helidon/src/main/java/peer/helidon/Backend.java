package peer.helidon;

import io.helidon.webclient.api.WebClient;
import peer.Params;

/** What a gateway calls, over Helidon's own client, which is made for virtual threads too. */
final class Backend {
    private static final int CALLS = 3;

    private final WebClient client;

    Backend(Params params) {
        client = WebClient.builder()
                .baseUri("http://127.0.0.1:" + params.get("backend"))
                // It would keep no more than 256 connections.
                .connectionCacheSize(Integer.MAX_VALUE)
                .build();
    }

    /** Calls it three times, one after the other, and returns the sum of the lengths of the bodies. */
    long call() {
        long length = 0;
        for (int i = 0; i < CALLS; i++) {
            try (var response = client.get("/").request()) {
                if (response.status().code() != 200) {
                    throw new IllegalStateException("the backend answers " + response.status().code());
                }
                length += response.as(byte[].class).length;
            }
        }
        return length;
    }
}
