# What a Perl program does with threads. For ci/programs.
use strict;
use warnings;
use threads;
use threads::shared;
use Thread::Queue;
use IO::Socket::INET;

my $sum : shared = 0;
my $queue = Thread::Queue->new;
my @workers = map {
    threads->create(sub {
        while (defined(my $item = $queue->dequeue)) { lock $sum; $sum += $item; }
        return 1;
    })
} 1 .. 50;
$queue->enqueue(1 .. 5000);
$queue->end;
my $ended = 0;
$ended += $_->join for @workers;
print "$ended workers, $sum\n";

my $listener = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die $!;
my $server = threads->create(sub {
    for (1 .. 20) {
        my $client = $listener->accept;
        print $client uc <$client>;
        close $client;
    }
});
my @clients = map {
    threads->create(sub {
        my $socket = IO::Socket::INET->new('127.0.0.1:' . $listener->sockport) or die $!;
        print $socket "line\n";
        return <$socket>;
    })
} 1 .. 20;
my %lines;
$lines{ $_->join }++ for @clients;
$server->join;
print "$lines{$_} of $_" for keys %lines;

my @times = map { threads->create(sub { select undef, undef, undef, 0.01; `echo $_[0]` }, $_) } 1 .. 10;
print join ',', map { my $text = $_->join; chomp $text; $text } @times;
print "\n";
