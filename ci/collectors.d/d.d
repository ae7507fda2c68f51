// Threads build lists and check them, collect, and wait for each other.
import core.memory : GC;
import core.stdc.stdlib : abort;
import core.sync.condition;
import core.sync.mutex;
import core.thread;
import core.time;
import std.stdio;

class Node
{
    Node next;
    ulong number;
}

__gshared MonoTime end;
__gshared Mutex mutex;
__gshared Condition changed;

bool over()
{
    return MonoTime.currTime >= end;
}

Node build(ulong count)
{
    Node first;
    foreach_reverse (number; 1 .. count + 1)
    {
        auto node = new Node;
        node.number = number;
        node.next = first;
        first = node;
    }
    return first;
}

void check(Node first)
{
    ulong expected = 1;
    for (auto node = first; node !is null; node = node.next, expected++)
    {
        if (node.number != expected)
        {
            stderr.writeln("a node that is in use was freed");
            abort();
        }
    }
    if (expected != 201)
        abort();
}

void work(int seed)
{
    while (!over())
    {
        auto held = build(200);
        switch (seed++ % 7)
        {
        case 0:
            Thread.sleep(200.usecs);
            break;
        case 1:
            auto thread = new Thread({ check(build(200)); }).start();
            thread.join();
            break;
        case 2:
            GC.collect();
            break;
        case 3:
            synchronized (mutex)
                changed.notifyAll();
            break;
        default:
        }
        check(held);
    }
}

void waitForChange()
{
    while (!over())
    {
        auto held = build(200);
        synchronized (mutex)
            changed.wait(1.seconds);
        check(held);
    }
}

Thread worker(int seed)
{
    return new Thread({ work(seed); }).start();
}

void main()
{
    mutex = new Mutex;
    changed = new Condition(mutex);
    end = MonoTime.currTime + 1.seconds;
    Thread[] threads;
    foreach (i; 0 .. 20)
        threads ~= worker(i);
    foreach (i; 0 .. 8)
        threads ~= new Thread(&waitForChange).start();
    foreach (thread; threads)
        thread.join();
    writeln("ok");
}
