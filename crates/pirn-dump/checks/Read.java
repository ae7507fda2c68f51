import java.nio.file.*;
import java.time.Instant;
import java.util.*;
import java.util.regex.*;

/** Reads a dump as the parser of the JDK's own tests does: java Read.java FILE. */
public class Read {
    static final Pattern FRAME = Pattern.compile(
            "(?s).+\\((Native Method|Unknown Source|[^()]+|[^()]+:\\d+)\\)");
    final String text;
    int at;

    Read(String text) { this.text = text; }

    public static void main(String[] arguments) throws Exception {
        var reader = new Read(Files.readString(Path.of(arguments[0])));
        var dump = (Map<?, ?>) ((Map<?, ?>) reader.value()).get("threadDump");
        boolean numbers = dump.containsKey("formatVersion");
        if (numbers && !dump.get("formatVersion").equals(2L)) throw new Exception("formatVersion");
        integer(dump.get("processId"), numbers);
        Instant.parse((String) dump.get("time"));
        var known = new HashSet<String>();
        var tids = new HashSet<Long>();
        for (Object item : (List<?>) dump.get("threadContainers")) {
            var container = (Map<?, ?>) item;
            var parent = (String) container.get("parent");
            if (parent == null ? !known.isEmpty() : !known.contains(parent)) throw new Exception("parent " + parent);
            if (!known.add((String) container.get("container"))) throw new Exception("twice " + container.get("container"));
            if (container.get("owner") != null) integer(container.get("owner"), numbers);
            var threads = (List<?>) container.get("threads");
            if (integer(container.get("threadCount"), numbers) < threads.size()) throw new Exception("threadCount");
            for (Object thread : threads) tids.add(check((Map<?, ?>) thread, numbers));
        }
        System.out.println(known.size() + " containers, " + tids.size() + " threads");
    }

    static long check(Map<?, ?> thread, boolean numbers) throws Exception {
        long tid = integer(thread.get("tid"), numbers);
        Instant.parse((String) thread.get("time"));
        Thread.State.valueOf((String) thread.get("state"));
        Objects.requireNonNull((String) thread.get("name"));
        if (thread.get("carrier") != null) integer(thread.get("carrier"), numbers);
        if (thread.get("parkBlocker") instanceof Map<?, ?> blocker) {
            if (!((String) blocker.get("object")).contains("@")) throw new Exception("object of " + tid);
        }
        for (Object frame : (List<?>) thread.get("stack")) {
            if (!FRAME.matcher((String) frame).matches()) throw new Exception("frame " + frame);
        }
        return tid;
    }

    static long integer(Object value, boolean numbers) throws Exception {
        if (numbers != value instanceof Long) throw new Exception("kind of number: " + value);
        return numbers ? (Long) value : Long.parseLong((String) value);
    }

    // A parser of JSON: strict where it matters here.

    char next() {
        while (Character.isWhitespace(text.charAt(at))) at++;
        return text.charAt(at);
    }

    void expect(char c) {
        if (next() != c) throw new IllegalStateException("at " + at + ": no " + c);
        at++;
    }

    Object value() {
        switch (next()) {
            case '{' -> {
                var object = new LinkedHashMap<String, Object>();
                at++;
                while (next() != '}') {
                    if (!object.isEmpty()) expect(',');
                    next();
                    String name = string();
                    expect(':');
                    object.put(name, value());
                }
                at++;
                return object;
            }
            case '[' -> {
                var list = new ArrayList<Object>();
                at++;
                while (next() != ']') {
                    if (!list.isEmpty()) expect(',');
                    list.add(value());
                }
                at++;
                return list;
            }
            case '"' -> { return string(); }
            default -> {
                var matcher = Pattern.compile("true|false|null|-?\\d+").matcher(text).region(at, text.length());
                if (!matcher.lookingAt()) throw new IllegalStateException("at " + at);
                at = matcher.end();
                return switch (matcher.group()) {
                    case "true" -> true;
                    case "false" -> false;
                    case "null" -> null;
                    default -> Long.valueOf(matcher.group());
                };
            }
        }
    }

    String string() {
        var result = new StringBuilder();
        at++;
        for (; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c < ' ') throw new IllegalStateException("a control character at " + at);
            if (c != '\\') {
                result.append(c);
                continue;
            }
            c = text.charAt(++at);
            int escape = "\"\\/bfnrt".indexOf(c);
            if (escape >= 0) result.append("\"\\/\b\f\n\r\t".charAt(escape));
            else {
                result.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                at += 4;
            }
        }
        at++;
        return result.toString();
    }
}
