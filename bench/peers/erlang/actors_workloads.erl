%% The workload `actors`, of processes.
-module(actors_workloads).
-export([find/2]).

%% How many send at once, in two of the metrics of messages.
-define(SENDERS, 4).

find("actor-messages", P) -> messages(size(messages, P), size(many, P));
find("actor-asks", P) ->
    asks(size(crowd, P), size(tells, P), size(asks, P), size(turns, P), size(each, P));
find("actor-create", P) -> create(size(actors, P));
find("actor-idle", P) -> idle(size(actors, P));
find("actor-chain", P) -> chain(size(row, P));
find("actor-skynet", P) -> skynet(size(leaves, P));
find(_, _) -> none.

size(Key, Params) ->
    case Params of
        #{Key := Value} -> Value;
        _ -> throw({wrong, lists:concat(["the parameter ", Key, " is missing"])})
    end.

%% Adds up numbers.

counter(Sum) ->
    receive
        {add, Number} -> counter(Sum + Number);
        {total, {To, Tag}} -> To ! {Tag, Sum}, counter(Sum);
        {next, Number, {To, Tag}} -> To ! {Tag, Number + 1}, counter(Sum);
        stop -> ok
    end.

start(Sum) -> spawn(fun() -> counter(Sum) end).

start_all(Count) -> [start(0) || _ <- lists:seq(1, Count)].

ask(Pid, Message) ->
    Tag = erlang:monitor(process, Pid, [{alias, reply_demonitor}]),
    Pid ! Message({Tag, Tag}),
    receive
        {Tag, Answer} -> Answer;
        {'DOWN', Tag, process, Pid, Reason} -> exit(Reason)
    after 60000 -> exit(timeout)
    end.

total(Counter) -> ask(Counter, fun(From) -> {total, From} end).

totals(Counters) -> lists:foldl(fun(Counter, Sum) -> Sum + total(Counter) end, 0, Counters).

%% Ends processes, all at once, and waits for them.
stop(Pids) ->
    Monitors = [{erlang:monitor(process, Pid), Pid ! stop} || Pid <- Pids],
    [receive {'DOWN', Monitor, process, _, _} -> ok end || {Monitor, stop} <- Monitors],
    ok.

%% actor-messages

messages(One, Many) when Many rem ?SENDERS =:= 0 ->
    fun(_) -> [
        of_messages("1 to 1", One, one_to_one(One)),
        of_messages("4 to 4", Many, from_all(Many, ?SENDERS)),
        of_messages("4 to 1", Many, from_all(Many, 1))
    ] end;
messages(_, _) -> throw({wrong, "many must be a multiple of the senders"}).

of_messages(Metric, Count, {Nanos, Sum}) ->
    {Metric, Nanos / Count, "ns/message", Sum, sum_below(Count)}.

one_to_one(Count) ->
    Counter = start(0),
    Took = timed(fun() -> add(Counter, 0, Count), total(Counter) end),
    stop([Counter]),
    Took.

%% Sends the numbers from First to Last - 1.
add(_, Last, Last) -> ok;
add(Counter, First, Last) ->
    Counter ! {add, First},
    add(Counter, First + 1, Last).

from_all(Count, Actors) ->
    Counters = start_all(Actors),
    Share = Count div ?SENDERS,
    Took = timed(fun() ->
        Senders = [
            spawn_monitor(fun() ->
                Counter = lists:nth(Sender rem Actors + 1, Counters),
                add(Counter, Sender * Share, (Sender + 1) * Share)
            end)
            || Sender <- lists:seq(0, ?SENDERS - 1)
        ],
        [receive {'DOWN', Monitor, process, Pid, normal} -> ok end || {Pid, Monitor} <- Senders],
        totals(Counters)
    end),
    stop(Counters),
    Took.

%% actor-asks

asks(Crowd, Tells, Asks, Turns, Each) when Crowd > 0, Each > 0 ->
    fun(_) ->
        {TellNanos, Told} = tell(Crowd, Tells),
        {AskNanos, Asked} = ask_often(Asks),
        {TurnNanos, Last} = in_turn(Turns),
        {ReplyNanos, Done} = replies(Crowd, Each),
        [
            {"tell", TellNanos / Tells, "ns/message", Told, sum_below(Tells)},
            {"ask", AskNanos / Asks, "ns/ask", Asked, sum_below(Asks + 1)},
            {"in turn", TurnNanos / Turns, "ns/message", Last, Turns},
            {"replies", ReplyNanos / (Crowd * Each), "ns/reply", Done, Crowd * Each}
        ]
    end;
asks(_, _, _, _, _) -> throw({wrong, "crowd and each must not be 0"}).

tell(Crowd, Count) ->
    Counters = start_all(Crowd),
    Took = timed(fun() -> tell(Counters, Counters, 0, Count), totals(Counters) end),
    stop(Counters),
    Took.

tell(_, _, Count, Count) -> ok;
tell([], All, Number, Count) -> tell(All, All, Number, Count);
tell([Counter | Rest], All, Number, Count) ->
    Counter ! {add, Number},
    tell(Rest, All, Number + 1, Count).

ask_often(Count) ->
    Counter = start(0),
    Took = timed(fun() -> ask_often(Counter, 0, Count, 0) end),
    stop([Counter]),
    Took.

ask_often(_, Count, Count, Sum) -> Sum;
ask_often(Counter, Number, Count, Sum) ->
    Answer = ask(Counter, fun(From) -> {next, Number, From} end),
    ask_often(Counter, Number + 1, Count, Sum + Answer).

%% One of two that send each other a number, until it is the last.
player(Other, Last, Outcome) ->
    receive
        {meet, Met} -> player(Met, Last, Outcome);
        {number, Last} -> Outcome ! {last, Last}, player(Other, Last, Outcome);
        {number, Number} -> Other ! {number, Number + 1}, player(Other, Last, Outcome);
        stop -> ok
    end.

in_turn(Last) ->
    Self = self(),
    [First, Second] = Players = [spawn(fun() -> player(none, Last, Self) end) || _ <- [1, 2]],
    First ! {meet, Second},
    Second ! {meet, First},
    Took = timed(fun() ->
        First ! {number, 0},
        receive {last, Number} -> Number end
    end),
    stop(Players),
    Took.

%% Has work for each of its workers, piece by piece, and counts what is done.
master(Each, Left, Done, Outcome) ->
    receive
        {'begin', Workers} ->
            [Worker ! {piece, 1} || Worker <- Workers],
            master(Each, length(Workers) * Each, 0, Outcome);
        {done, Worker, Piece} ->
            if
                Piece < Each -> Worker ! {piece, Piece + 1};
                Left =:= 1 -> Outcome ! {all, Done + 1};
                true -> ok
            end,
            master(Each, Left - 1, Done + 1, Outcome);
        stop -> ok
    end.

worker(Master) ->
    receive
        {piece, Piece} -> Master ! {done, self(), Piece}, worker(Master);
        stop -> ok
    end.

replies(Crowd, Each) ->
    Self = self(),
    Master = spawn(fun() -> master(Each, 0, 0, Self) end),
    Workers = [spawn(fun() -> worker(Master) end) || _ <- lists:seq(1, Crowd)],
    Took = timed(fun() ->
        Master ! {'begin', Workers},
        receive {all, Done} -> Done end
    end),
    stop([Master | Workers]),
    Took.

%% actor-create and actor-idle

create(Count) ->
    fun(_) ->
        {Creating, Counters} = timed(fun() -> numbered(Count) end),
        Sum = totals(Counters),
        stop(Counters),
        {Living, Ended} = timed(fun() -> create_and_end(Count, 0) end),
        [
            {"create", Creating / Count, "ns/actor", Sum, sum_below(Count)},
            {"create and end", Living / Count, "ns/actor", Ended, Count}
        ]
    end.

%% As many, each with its number.
numbered(Count) -> [start(Number) || Number <- lists:seq(0, Count - 1)].

create_and_end(Count, Count) -> Count;
create_and_end(Count, Ended) ->
    {Pid, Monitor} = spawn_monitor(fun() -> counter(Ended) end),
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    create_and_end(Count, Ended + 1).

idle(Count) ->
    fun(At) ->
        Counters = numbered(Count),
        totals(Counters),
        [erlang:garbage_collect(Pid) || Pid <- [self() | Counters]],
        At("idle", Count),
        {Nanos, Sum} = timed(fun() -> totals(Counters) end),
        stop(Counters),
        [{"ask", Nanos / Count, "ns/actor", Sum, sum_below(Count)}]
    end.

%% actor-chain and actor-skynet

pass_on(Next) ->
    receive
        {number, Number} -> Next ! {number, Number + 1}, pass_on(Next);
        stop -> ok
    end.

row(0, _, Row) -> Row;
row(Count, Next, Row) ->
    Link = spawn(fun() -> pass_on(Next) end),
    row(Count - 1, Link, [Link | Row]).

chain(Count) when Count > 0 ->
    fun(_) ->
        {Nanos, {Row, Number}} = timed(fun() ->
            [Rightmost | _] = Row = row(Count, self(), []),
            Rightmost ! {number, 0},
            receive {number, Number} -> {Row, Number} end
        end),
        stop(Row),
        [{"wall", Nanos / 1.0e9, "s", Number, Count}]
    end;
chain(_) -> throw({wrong, "a row has an actor"}).

%% Adds up a range of numbers: has other nodes do it, if there is more than one.
add_up(Parent) ->
    receive
        {range, First, 1} -> Parent ! {sum, First};
        {range, First, Size} ->
            Part = Size div 10,
            [start_node(self(), First + Child * Part, Part) || Child <- lists:seq(0, 9)],
            Parent ! {sum, sums(10, 0)}
    end.

start_node(Parent, First, Size) -> spawn(fun() -> add_up(Parent) end) ! {range, First, Size}.

sums(0, Sum) -> Sum;
sums(Missing, Sum) -> receive {sum, Part} -> sums(Missing - 1, Sum + Part) end.

skynet(Leaves) ->
    is_power_of_ten(Leaves) orelse throw({wrong, "leaves must be a power of ten"}),
    fun(_) ->
        {Nanos, Sum} = timed(fun() -> start_node(self(), 0, Leaves), sums(1, 0) end),
        [{"wall", Nanos / 1.0e9, "s", Sum, sum_below(Leaves)}]
    end.

is_power_of_ten(1) -> true;
is_power_of_ten(N) when N >= 10, N rem 10 =:= 0 -> is_power_of_ten(N div 10);
is_power_of_ten(_) -> false.

%% Nanoseconds, and what the work came to.
timed(Work) ->
    Start = erlang:monotonic_time(nanosecond),
    Result = Work(),
    {erlang:monotonic_time(nanosecond) - Start, Result}.

%% The sum of 0 .. N-1.
sum_below(N) -> N * (N - 1) div 2.
