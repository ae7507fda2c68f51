package peer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.stream.Collectors;

/** What is said to the harness on standard output, a JSON object a line, and what it answers on standard input. */
public final class Protocol {
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));

    private Protocol() {}

    static void peer(String name, String version) {
        print("{\"peer\":%s,\"version\":%s}".formatted(quoted(name), quoted(version)));
    }

    /** Reports a number, with the check of the work: what came out, and what must, as unsigned numbers. */
    static void metric(String name, double value, String unit, long done, long due) {
        print("{\"metric\":%s,\"value\":%s,\"unit\":%s,\"done\":%s,\"due\":%s}".formatted(
                quoted(name), value, quoted(unit), Long.toUnsignedString(done), Long.toUnsignedString(due)));
    }

    /** Reports that a number cannot be had, and why. */
    static void skip(String metric, String why) {
        print("{\"metric\":%s,\"skip\":%s}".formatted(quoted(metric), quoted(why)));
    }

    /**
     * Stands still, to be looked at from outside, until the harness has answered. Returns how many more of the same
     * are to be done before the peer goes on.
     */
    public static int at(String place, long count) throws IOException {
        print("{\"at\":%s,\"count\":%d}".formatted(quoted(place), count));
        String line = nextLine();
        if ("go".equals(line)) {
            return 0;
        }
        if (line != null && line.matches("more \\d{1,9}")) {
            return Integer.parseInt(line.substring("more ".length()));
        }
        throw new IllegalArgumentException("expected go or more, got " + line);
    }

    /** Tells that a server is ready on this port. */
    public static void listening(int port) {
        print("{\"listening\":%d}".formatted(port));
    }

    static void end() {
        print("{\"end\":true}");
    }

    /** Tells what went wrong first and ends the process, whatever its other threads do. */
    static synchronized void fail(String error, int code) {
        try {
            print("{\"error\":%s}".formatted(quoted(error)));
        } finally {
            Runtime.getRuntime().halt(code);
        }
    }

    /** The next line of the harness, or null if it has no more to say. */
    static String nextLine() throws IOException {
        String line = IN.readLine();
        return line == null ? null : line.strip();
    }

    private static void print(String json) {
        System.out.println(json);
        System.out.flush();
    }

    /** A string in JSON, in ASCII: the encoding of standard output is the locale's. */
    private static String quoted(String text) {
        return text.chars()
                .mapToObj(c -> isPlain(c) ? Character.toString(c) : "\\u%04x".formatted(c))
                .collect(Collectors.joining("", "\"", "\""));
    }

    private static boolean isPlain(int c) {
        return c >= ' ' && c <= '~' && c != '"' && c != '\\';
    }
}
