// Threads build lists and check them, collect, and wait for each other.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

static class Program
{
    class Node
    {
        public Node Next;
        public int Number;
    }

    static readonly object Changed = new object();
    static readonly Stopwatch Clock = Stopwatch.StartNew();

    static bool Over()
    {
        return Clock.ElapsedMilliseconds >= 1000;
    }

    static Node Build(int count)
    {
        Node first = null;
        for (int number = count; number > 0; number--)
            first = new Node { Next = first, Number = number };
        return first;
    }

    static void Check(Node first)
    {
        int expected = 1;
        for (var node = first; node != null; node = node.Next, expected++)
            if (node.Number != expected)
                Environment.FailFast("a node that is in use was freed");
        if (expected != 201)
            Environment.FailFast("nodes that are in use were freed");
    }

    static void Work(int seed)
    {
        for (; !Over(); seed++)
        {
            var held = Build(200);
            switch (seed % 7)
            {
                case 0: Thread.Sleep(1); break;
                case 1:
                    var thread = new Thread(() => Check(Build(200)));
                    thread.Start();
                    thread.Join();
                    break;
                case 2: GC.Collect(); break;
                case 3: lock (Changed) Monitor.PulseAll(Changed); break;
                case 4: System.Threading.Tasks.Task.Run(() => Check(Build(200))).Wait(); break;
            }
            Check(held);
        }
    }

    static void WaitForChange()
    {
        while (!Over())
        {
            var held = Build(200);
            lock (Changed) Monitor.Wait(Changed, 1000);
            Check(held);
        }
    }

    static void Main()
    {
        var threads = new List<Thread>();
        for (int i = 0; i < 20; i++)
        {
            int seed = i;
            threads.Add(new Thread(() => Work(seed)));
        }
        for (int i = 0; i < 8; i++)
            threads.Add(new Thread(WaitForChange));
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        Console.WriteLine("ok");
    }
}
