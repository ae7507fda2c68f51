%% The benchmark peer `erlang`: the protocol of bench/PROTOCOL.md, for processes as they come. Their
%% mailboxes are not bounded. An ask is made as `gen_server:call` makes it: with a monitor, whose
%% alias takes the answer, and a time limit.
-module(actors).
-export([main/0]).

main() ->
    say("{\"peer\":\"erlang\",\"version\":\"Erlang/OTP ~s, erts ~s\"}",
        [erlang:system_info(otp_release), erlang:system_info(version)]),
    Code = try run(init:get_plain_arguments()) catch throw:{wrong, Why} -> fail(Why, 2) end,
    halt(Code).

run([]) -> fail("no workload is named", 2);
run([Name | Args]) ->
    Params = maps:from_list([param(Arg) || Arg <- Args]),
    case actors_workloads:find(Name, Params) of
        none -> fail(io_lib:format("there is no workload ~s", [Name]), 2);
        Workload -> rounds(Workload)
    end.

param(Arg) ->
    case string:split(Arg, "=") of
        [Key, Value] ->
            try {list_to_atom(Key), list_to_integer(Value)}
            catch error:badarg -> throw({wrong, Arg ++ " is not key=number"})
            end;
        _ -> throw({wrong, Arg ++ " is not key=number"})
    end.

rounds(Workload) ->
    case word() of
        "round" -> report(inside(Workload), Workload);
        eof -> 0;
        Word -> fail(io_lib:format("expected round, got ~s", [Word]), 2)
    end.

%% The work is done by a process that is not the one that talks to the harness.
inside(Workload) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({done, Workload(fun at/2)}) end),
    receive {'DOWN', Monitor, process, Pid, Exit} -> Exit end.

report({done, Metrics}, Workload) ->
    lists:foreach(fun metric/1, Metrics),
    say("{\"end\":true}", []),
    rounds(Workload);
report(Exit, _) ->
    fail(lists:flatten(io_lib:format("~0p", [Exit])), 1).

metric({Metric, Value, Unit, Done, Due}) ->
    say("{\"metric\":\"~s\",\"value\":~w,\"unit\":\"~s\",\"done\":~w,\"due\":~w}",
        [Metric, float(Value), Unit, Done, Due]).

%% Stands still, to be looked at from outside.
at(Place, Count) ->
    say("{\"at\":\"~s\",\"count\":~w}", [Place, Count]),
    "go" = word().

word() ->
    case io:get_line("") of
        eof -> eof;
        Line -> string:trim(Line)
    end.

fail(Why, Code) ->
    Plain = [case C of $" -> $'; $\\ -> $/; C when C < 32 -> 32; C -> C end || C <- lists:flatten(Why)],
    say("{\"error\":\"~s\"}", [Plain]),
    Code.

say(Format, Args) ->
    io:put_chars([io_lib:format(Format, Args), $\n]).
