package peer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** {@code echo}: a server that sends back what it gets and its clients, in one program. */
final class Echo implements Workload {
    private static final int SIZE = 64;

    private final Kind kind;
    private final int connections;
    private final int trips;

    Echo(Kind kind, Params params) {
        this.kind = kind;
        connections = params.count("connections");
        trips = params.count("trips");
    }

    @Override
    public void round() throws Exception {
        try (var listener = new ServerSocket(0, 4096, InetAddress.getLoopbackAddress())) {
            Thread server = kind.start(() -> serve(listener));
            talk(listener.getLocalPort());
            server.join();
        }
    }

    /** Accepts all clients, and ends when they have gone. */
    private void serve(ServerSocket listener) {
        List<Thread> all = new ArrayList<>(connections);
        try {
            for (int i = 0; i < connections; i++) {
                Socket socket = listener.accept();
                all.add(kind.start(() -> sendBack(socket)));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        all.forEach(Waiting::join);
    }

    private static void sendBack(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            var in = socket.getInputStream();
            var out = socket.getOutputStream();
            var buffer = new byte[4096];
            for (int read; (read = in.read(buffer)) > 0;) {
                out.write(buffer, 0, read);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void talk(int port) throws InterruptedException {
        var connected = new CountDownLatch(connections);
        var gate = new CountDownLatch(1);
        var right = new AtomicLong();
        var all = new ArrayList<Thread>(connections);
        for (int i = 0; i < connections; i++) {
            int number = i;
            all.add(kind.start(() -> {
                try (var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
                    socket.setTcpNoDelay(true);
                    connected.countDown();
                    Waiting.await(gate);
                    right.addAndGet(exchange(socket, number));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }));
        }
        connected.await();
        long start = System.nanoTime();
        gate.countDown();
        all.forEach(Waiting::join);
        long pieces = (long) connections * trips;
        Took.since(start, right.get()).report("round trip", "round trip", pieces, pieces * SIZE);
    }

    /** Sends and gets back, and returns how many bytes came back right. */
    private long exchange(Socket socket, int seed) throws IOException {
        var in = socket.getInputStream();
        var out = socket.getOutputStream();
        var sent = new byte[SIZE];
        var got = new byte[SIZE];
        long right = 0;
        for (int i = 0; i < trips; i++) {
            Arrays.fill(sent, (byte) (seed + i));
            out.write(sent);
            if (in.readNBytes(got, 0, SIZE) == SIZE && Arrays.equals(sent, got)) {
                right += SIZE;
            }
        }
        return right;
    }
}
