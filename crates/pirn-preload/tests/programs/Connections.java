import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.atomic.*;

/**
 * A server with a thread for each connection, which sends back what it gets. It ends when a client sends a zero first;
 * for ci/programs. Arguments: the port, how many connections there will be at once, and the file for the outcome.
 */
public class Connections {
    static final AtomicInteger open = new AtomicInteger();
    static final AtomicInteger most = new AtomicInteger();
    static final AtomicLong answers = new AtomicLong();

    /** Whether the client wants the server to end. */
    static boolean echo(Socket socket) {
        most.accumulateAndGet(open.incrementAndGet(), Math::max);
        try (socket) {
            InputStream in = socket.getInputStream();
            OutputStream out = socket.getOutputStream();
            byte[] bytes = new byte[64];
            for (int read; (read = in.read(bytes)) > 0; ) {
                if (bytes[0] == 0) return true;
                out.write(bytes, 0, read);
                answers.incrementAndGet();
            }
        } catch (IOException e) {
            System.out.println(e);
        } finally {
            open.decrementAndGet();
        }
        return false;
    }

    static void close(ServerSocket listener) {
        try {
            listener.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]), expected = Integer.parseInt(arguments[1]);
        List<Thread> threads = new ArrayList<>();
        try (ServerSocket listener =
                new ServerSocket(port, 4096, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket socket = listener.accept();
                Thread thread = new Thread(() -> {
                    if (echo(socket)) close(listener);
                });
                thread.start();
                threads.add(thread);
            }
        } catch (SocketException e) {
            // The listener is closed.
        }
        for (Thread thread : threads) thread.join();
        Object number = answers.get() == 3L * expected ? "three each" : answers;
        String outcome = "all at once: %b%nanswers: %s%n".formatted(most.get() >= expected, number);
        Files.writeString(Path.of(arguments[2]), outcome);
    }
}
