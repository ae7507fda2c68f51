// The list of requests by Java's HttpClient: `Clients.java URL LIST [CERTIFICATE]`. With the server's
// certificate they are made by HTTP/2.

import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Clients {
    static final int ROUNDS = 3, AT_ONCE = 20;

    static void ask(HttpClient client, String url, String[] row) throws Exception {
        byte[] body = "x".repeat(Integer.parseInt(row[2])).getBytes(StandardCharsets.US_ASCII);
        var publisher = row[3].equals("chunked")
            ? BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body))
            : body.length == 0 ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(body);
        var request = HttpRequest.newBuilder(URI.create(url + row[1])).method(row[0], publisher)
            .timeout(Duration.ofSeconds(120)).build();
        var response = client.send(request, BodyHandlers.ofByteArray());
        String text = new String(response.body(), StandardCharsets.ISO_8859_1);
        boolean fine = response.statusCode() == Integer.parseInt(row[4])
            && (response.version() == HttpClient.Version.HTTP_2) == url.startsWith("https:");
        if (row[5].equals("echo")) {
            fine &= text.contains("\"length\":" + row[2] + ",") && text.contains("\"method\":\"" + row[0] + "\"")
                && text.contains("\"target\":\"" + row[1] + "\"");
        } else {
            fine &= text.length() == Integer.parseInt(row[5]);
        }
        if (!fine) {
            String start = text.substring(0, Math.min(200, text.length()));
            throw new AssertionError(String.join(" ", row) + ": " + response.statusCode() + ": " + start);
        }
    }

    /** Returns what trusts this certificate only. */
    static SSLContext trusting(String certificate) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = Files.newInputStream(Path.of(certificate))) {
            store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    public static void main(String[] arguments) throws Exception {
        List<String[]> list = Files.readAllLines(Path.of(arguments[1])).stream()
            .filter(line -> !line.isEmpty() && !line.startsWith("#")).map(line -> line.split(" ")).toList();
        // Without TLS: without an upgrade to HTTP/2, and then with one that the server need not take.
        var versions = arguments.length > 2 ? List.of(HttpClient.Version.HTTP_2)
            : List.of(HttpClient.Version.HTTP_1_1, HttpClient.Version.HTTP_2);
        for (var version : versions) {
            var builder = HttpClient.newBuilder().version(version);
            var client = (arguments.length > 2 ? builder.sslContext(trusting(arguments[2])) : builder).build();
            var pool = Executors.newFixedThreadPool(AT_ONCE);
            List<Future<?>> all = new ArrayList<>();
            for (int thread = 0; thread < AT_ONCE; thread++) {
                all.add(pool.submit(() -> {
                    for (int round = 0; round < ROUNDS; round++) {
                        for (String[] row : list) {
                            ask(client, arguments[0], row);
                        }
                    }
                    return null;
                }));
            }
            pool.shutdown();
            for (var one : all) {
                one.get();
            }
            System.out.printf("HttpClient of Java %s, %s: %d requests%n", System.getProperty("java.version"), version,
                list.size() * ROUNDS * AT_ONCE);
        }
        System.exit(0); // The client's threads would go on.
    }
}
