package peer.fibry;

import java.util.ArrayList;
import java.util.List;
import peer.Params;
import peer.Took;
import peer.Workload;

/** {@code actor-messages}: numbers to actors that add them up. */
final class Messages implements Workload {
    private static final int SENDERS = 4;

    private final long one;
    private final long many;

    Messages(Params params) {
        one = params.get("messages");
        many = params.get("many");
        if (many % SENDERS != 0) {
            throw new IllegalArgumentException("many must be a multiple of " + SENDERS);
        }
    }

    @Override
    public void round() throws Exception {
        Actors.inside(this::oneToOne).report("1 to 1", "message", one, Actors.sumBelow(one));
        Actors.inside(() -> fromAll(SENDERS)).report("4 to 4", "message", many, Actors.sumBelow(many));
        Actors.inside(() -> fromAll(1)).report("4 to 1", "message", many, Actors.sumBelow(many));
    }

    private Took oneToOne() throws Exception {
        var counter = Actors.counter(0);
        long start = System.nanoTime();
        for (long number = 0; number < one; number++) {
            counter.sendMessage(new Actors.Add(number));
        }
        var took = Took.since(start, Actors.total(List.of(counter)));
        Actors.end(List.of(counter));
        return took;
    }

    /** From all senders, each to one of the actors. */
    private Took fromAll(int actors) throws Exception {
        var counters = Actors.counters(actors);
        long share = many / SENDERS;
        var senders = new ArrayList<Thread>();
        long start = System.nanoTime();
        for (int i = 0; i < SENDERS; i++) {
            var to = counters.get(i % actors);
            long first = i * share;
            senders.add(Thread.startVirtualThread(() -> {
                for (long number = first; number < first + share; number++) {
                    to.sendMessage(new Actors.Add(number));
                }
            }));
        }
        for (var sender : senders) {
            sender.join();
        }
        var took = Took.since(start, Actors.total(counters));
        Actors.end(counters);
        return took;
    }
}
