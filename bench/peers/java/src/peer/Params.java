package peer;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The {@code key=value} arguments of a workload. */
public final class Params {
    private final Map<String, Long> values = new HashMap<>();

    Params(String[] args) {
        Arrays.stream(args).forEach(this::add);
    }

    private void add(String arg) {
        int sign = arg.indexOf('=');
        try {
            long value = Long.parseLong(arg.substring(sign + 1));
            if (sign < 1 || value < 0) {
                throw new NumberFormatException();
            }
            values.put(arg.substring(0, sign), value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("\"" + arg + "\" is not key=number", e);
        }
    }

    /** The value of a key. */
    public long get(String key) {
        Long value = values.get(key);
        if (value == null) {
            throw new IllegalArgumentException("the parameter " + key + " is missing");
        }
        return value;
    }

    /** The value of a key that says how many there are of something. */
    public int count(String key) {
        long value = get(key);
        if (value > Integer.MAX_VALUE) {
            throw new IllegalArgumentException("the parameter " + key + " is too large");
        }
        return (int) value;
    }
}
