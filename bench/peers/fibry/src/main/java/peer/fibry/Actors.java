package peer.fibry;

import eu.lucaventuri.fibry.Actor;
import eu.lucaventuri.fibry.ActorSystem;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.function.Function;

/** Actors that add up numbers, and what all workloads do with actors. */
final class Actors {
    private Actors() {}

    /** What a counter gets. */
    sealed interface Message {}

    /** Adds a number. */
    record Add(long number) implements Message {}

    /** Asks for the sum. */
    record Total() implements Message {}

    /** Asks for the number after this one. */
    record Next(long number) implements Message {}

    /** An actor that adds up numbers. */
    static Actor<Message, Long, Void> counter(long first) {
        return ActorSystem.anonymous().newActorWithReturn(new Function<Message, Long>() {
            private long sum = first;

            @Override
            public Long apply(Message message) {
                return switch (message) {
                    case Add(long number) -> sum += number;
                    case Total() -> sum;
                    case Next(long number) -> number + 1;
                };
            }
        });
    }

    /** As many, with the sum 0. */
    static List<Actor<Message, Long, Void>> counters(long count) {
        var counters = new ArrayList<Actor<Message, Long, Void>>();
        for (long i = 0; i < count; i++) {
            counters.add(counter(0));
        }
        return counters;
    }

    /** Asks each for its sum, one after the other, and adds these up. */
    static long total(List<Actor<Message, Long, Void>> counters) throws Exception {
        long sum = 0;
        for (var counter : counters) {
            sum += counter.sendMessageReturn(new Total()).get();
        }
        return sum;
    }

    /** Ends actors after the messages that they have, all at once, and waits for that. */
    static void end(List<? extends Actor<?, ?, ?>> actors) {
        actors.forEach(Actor::sendPoisonPill);
        actors.forEach(Actor::waitForExit);
    }

    /** Does work in a virtual thread, and returns its result. */
    static <T> T inside(Callable<T> work) throws Exception {
        var task = new FutureTask<>(work);
        Thread.startVirtualThread(task);
        return task.get();
    }

    /** The sum of 0 … n−1. */
    static long sumBelow(long n) {
        return n * (n - 1) / 2;
    }
}
