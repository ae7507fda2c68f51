package peer.fibry;

import eu.lucaventuri.fibry.Actor;
import eu.lucaventuri.fibry.ActorSystem;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import peer.Params;
import peer.Took;
import peer.Workload;

/** {@code actor-chain} and {@code actor-skynet}: actors that know each other, in a row and in a tree. */
final class Rows {
    private static final int BRANCHES = 10;

    private Rows() {}

    static Workload chain(Params params) {
        int row = params.count("row");
        return () -> Actors.inside(() -> passAlong(row)).reportWall(row);
    }

    private static Took passAlong(int count) throws Exception {
        var outcome = new CompletableFuture<Long>();
        var row = new ArrayList<Actor<Long, Void, Void>>(count);
        Consumer<Long> next = outcome::complete;
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            var to = next;
            // An actor is a consumer.
            Consumer<Long> passOn = number -> to.accept(number + 1);
            Actor<Long, Void, Void> link = ActorSystem.anonymous().newActor(passOn);
            row.add(link);
            next = link;
        }
        next.accept(0L);
        var took = Took.since(start, outcome.get());
        Actors.end(row.reversed());
        return took;
    }

    /** Asks for the sum of a range of numbers. */
    private record Range(long first, long size) {}

    static Workload skynet(Params params) {
        long leaves = params.get("leaves");
        long rest = leaves;
        while (rest > 1 && rest % BRANCHES == 0) {
            rest /= BRANCHES;
        }
        if (rest != 1) {
            throw new IllegalArgumentException("leaves must be a power of ten");
        }
        return () -> Actors.inside(() -> addUp(leaves)).reportWall(Actors.sumBelow(leaves));
    }

    private static Took addUp(long leaves) throws Exception {
        long start = System.nanoTime();
        return Took.since(start, ask(new Range(0, leaves)).get());
    }

    /** Has a new actor add up a range, which is all that it does. */
    private static CompletableFuture<Long> ask(Range range) {
        Function<Range, Long> sum = Rows::sum;
        Actor<Range, Long, Void> node = ActorSystem.anonymous().newActorWithReturn(sum);
        var answer = node.sendMessageReturn(range);
        node.sendPoisonPill();
        return answer;
    }

    /** Has other nodes do it, if there is more than one number. */
    private static long sum(Range range) {
        if (range.size() == 1) {
            return range.first();
        }
        long size = range.size() / BRANCHES;
        var sums = new ArrayList<CompletableFuture<Long>>(BRANCHES);
        for (int i = 0; i < BRANCHES; i++) {
            sums.add(ask(new Range(range.first() + i * size, size)));
        }
        return sums.stream().mapToLong(CompletableFuture::join).sum();
    }
}
