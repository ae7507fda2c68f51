package peer.fibry;

import eu.lucaventuri.fibry.Actor;
import java.util.ArrayList;
import java.util.List;
import peer.Params;
import peer.Protocol;
import peer.Took;
import peer.Workload;

/** {@code actor-create} and {@code actor-idle}: actors that come, wait and go. */
final class Lives {
    private Lives() {}

    static Workload create(Params params) {
        int count = params.count("actors");
        return () -> {
            Actors.inside(() -> createAll(count)).report("create", "actor", count, Actors.sumBelow(count));
            Actors.inside(() -> createAndEnd(count)).report("create and end", "actor", count, count);
        };
    }

    /** As many, each with its number. */
    private static List<Actor<Actors.Message, Long, Void>> numbered(int count) {
        var counters = new ArrayList<Actor<Actors.Message, Long, Void>>(count);
        for (int number = 0; number < count; number++) {
            counters.add(Actors.counter(number));
        }
        return counters;
    }

    private static Took createAll(int count) throws Exception {
        long start = System.nanoTime();
        var counters = numbered(count);
        long nanos = System.nanoTime() - start;
        long sum = Actors.total(counters);
        Actors.end(counters);
        return new Took(sum, nanos);
    }

    private static Took createAndEnd(int count) {
        long ended = 0;
        long start = System.nanoTime();
        for (int number = 0; number < count; number++) {
            var counter = Actors.counter(number);
            counter.sendPoisonPill();
            counter.waitForExit();
            ended += counter.isFinished() ? 1 : 0;
        }
        return Took.since(start, ended);
    }

    static Workload idle(Params params) {
        int count = params.count("actors");
        return () -> {
            var counters = Actors.inside(() -> {
                var used = numbered(count);
                Actors.total(used);
                return used;
            });
            System.gc();
            Protocol.at("idle", count);
            var took = Actors.inside(() -> {
                long start = System.nanoTime();
                return Took.since(start, Actors.total(counters));
            });
            Actors.end(counters);
            took.report("ask", "actor", count, Actors.sumBelow(count));
        };
    }
}
