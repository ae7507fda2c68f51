package run;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** A program for any JDK from 17 on that knows nothing of virtual threads: {@code run.Main WORKLOAD [key=value]...} */
final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        // A thread that fails must not leave the others waiting for it.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> fail(error, 1));
        System.out.printf("{\"peer\":\"run-java\",\"version\":\"JDK %s\"}%n", System.getProperty("java.version"));
        Map<String, Integer> params = new HashMap<>();
        for (int i = 1; i < args.length; i++) {
            String[] pair = args[i].split("=");
            params.put(pair[0], Integer.parseInt(pair[1]));
        }
        if (!args[0].equals("run-threads")) {
            fail(new IllegalArgumentException("no workload " + args[0]), 2);
        }
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                Starts.round(params.get("threads"));
            } catch (Throwable error) {
                fail(error, 1);
            }
            System.out.println("{\"end\":true}");
        }
        System.exit(0);
    }

    private static synchronized void fail(Throwable error, int code) {
        String text = error.toString().replaceAll("[\"\\\\]", "'");
        System.out.printf("{\"error\":\"%s\"}%n", text);
        System.out.flush();
        Runtime.getRuntime().halt(code);
    }
}
