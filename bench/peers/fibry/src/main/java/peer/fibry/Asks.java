package peer.fibry;

import eu.lucaventuri.fibry.Actor;
import eu.lucaventuri.fibry.ActorSystem;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import peer.Params;
import peer.Took;
import peer.Workload;

/** {@code actor-asks}: messages to many, asks, messages to and fro. */
final class Asks implements Workload {
    private final int crowd;
    private final long tells;
    private final long asks;
    private final long turns;
    private final long each;

    Asks(Params params) {
        crowd = params.count("crowd");
        tells = params.get("tells");
        asks = params.get("asks");
        turns = params.get("turns");
        each = params.get("each");
        if (crowd == 0 || each == 0) {
            throw new IllegalArgumentException("crowd and each must not be 0");
        }
    }

    @Override
    public void round() throws Exception {
        Actors.inside(this::tell).report("tell", "message", tells, Actors.sumBelow(tells));
        Actors.inside(this::ask).report("ask", "ask", asks, Actors.sumBelow(asks + 1));
        Actors.inside(this::inTurn).report("in turn", "message", turns, turns);
        Actors.inside(this::replies).report("replies", "reply", crowd * each, crowd * each);
    }

    private Took tell() throws Exception {
        var counters = Actors.counters(crowd);
        long start = System.nanoTime();
        for (long number = 0; number < tells; number++) {
            counters.get((int) (number % crowd)).sendMessage(new Actors.Add(number));
        }
        var took = Took.since(start, Actors.total(counters));
        Actors.end(counters);
        return took;
    }

    private Took ask() throws Exception {
        var counter = Actors.counter(0);
        long sum = 0;
        long start = System.nanoTime();
        for (long number = 0; number < asks; number++) {
            sum += counter.sendMessageReturn(new Actors.Next(number)).get();
        }
        var took = Took.since(start, sum);
        Actors.end(List.of(counter));
        return took;
    }

    /** What one of two gets who send each other a number, until it is the last. */
    private sealed interface Move {}

    private record Meet(Actor<Move, Void, Void> other) implements Move {}

    private record Number(long number) implements Move {}

    private static final class Player implements Consumer<Move> {
        private final long last;
        private final CompletableFuture<Long> outcome;
        private Actor<Move, Void, Void> other;

        Player(long last, CompletableFuture<Long> outcome) {
            this.last = last;
            this.outcome = outcome;
        }

        @Override
        public void accept(Move move) {
            switch (move) {
                case Meet(var met) -> other = met;
                case Number(long number) when number < last -> other.sendMessage(new Number(number + 1));
                case Number(long number) -> outcome.complete(number);
            }
        }
    }

    private Took inTurn() throws Exception {
        var outcome = new CompletableFuture<Long>();
        Actor<Move, Void, Void> first = ActorSystem.anonymous().newActor(new Player(turns, outcome));
        Actor<Move, Void, Void> second = ActorSystem.anonymous().newActor(new Player(turns, outcome));
        first.sendMessage(new Meet(second));
        second.sendMessage(new Meet(first));
        long start = System.nanoTime();
        first.sendMessage(new Number(0));
        var took = Took.since(start, outcome.get());
        Actors.end(List.of(first, second));
        return took;
    }

    /** What the master gets. */
    private sealed interface Report {}

    private record Begin(List<Actor<Long, Void, Void>> workers) implements Report {}

    private record Done(int worker, long piece) implements Report {}

    /** Has work for each of its workers, piece by piece, and counts what is done. */
    private final class Master implements Consumer<Report> {
        private final CompletableFuture<Long> outcome;
        private List<Actor<Long, Void, Void>> workers = List.of();
        private long count;

        Master(CompletableFuture<Long> outcome) {
            this.outcome = outcome;
        }

        @Override
        public void accept(Report report) {
            switch (report) {
                case Begin(var all) -> {
                    workers = all;
                    workers.forEach(worker -> worker.sendMessage(1L));
                }
                case Done(int worker, long piece) -> {
                    count++;
                    if (piece < each) {
                        workers.get(worker).sendMessage(piece + 1);
                    } else if (count == crowd * each) {
                        outcome.complete(count);
                    }
                }
            }
        }
    }

    private Took replies() throws Exception {
        var outcome = new CompletableFuture<Long>();
        Actor<Report, Void, Void> master = ActorSystem.anonymous().newActor(new Master(outcome));
        var workers = new ArrayList<Actor<Long, Void, Void>>();
        for (int i = 0; i < crowd; i++) {
            int number = i;
            Consumer<Long> work = piece -> master.sendMessage(new Done(number, piece));
            workers.add(ActorSystem.anonymous().newActor(work));
        }
        long start = System.nanoTime();
        master.sendMessage(new Begin(workers));
        var took = Took.since(start, outcome.get());
        Actors.end(workers);
        Actors.end(List.of(master));
        return took;
    }
}
