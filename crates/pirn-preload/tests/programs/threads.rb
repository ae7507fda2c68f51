# What a Ruby program does with threads. For ci/programs.
require 'socket'
require 'timeout'

queue = Queue.new
sum = 0
mutex = Mutex.new
workers = 50.times.map do
  Thread.new { while (item = queue.pop) do mutex.synchronize { sum += item } end }
end
(1..5000).each { |item| queue << item }
queue.close
workers.each(&:join)
puts "sum #{sum}"

server = TCPServer.new('127.0.0.1', 0)
acceptor = Thread.new do
  50.times { Thread.new(server.accept) { |client| client.puts client.gets.upcase; client.close } }
end
lines = 50.times.map do
  Thread.new do
    TCPSocket.open('127.0.0.1', server.addr[1]) { |socket| socket.puts 'line'; socket.gets }
  end
end.map(&:value)
acceptor.join
puts "lines #{lines.tally}"

sleepers = 100.times.map { Thread.new { sleep } }
sleep 0.01 until sleepers.all?(&:stop?)
sleepers.each(&:kill)
puts "killed #{sleepers.each(&:join).size}"
begin
  Timeout.timeout(0.05) { sleep }
rescue Timeout::Error => e
  puts "timeout #{e.class}"
end
puts "processes #{20.times.map { |i| Thread.new { `echo #{i}`.to_i } }.sum(&:value)}"

reader, writer = IO.pipe
pids = 4.times.map do
  fork { writer.puts 10.times.map { |i| Thread.new { sleep 0.01; i } }.sum(&:value) }
end
statuses = pids.map { |pid| Process.wait2(pid)[1].exitstatus }
writer.close
puts "forked #{statuses} #{reader.read.split.tally}"
puts "ractors #{4.times.map { |i| Ractor.new(i) { |n| (1..n * 1000).sum } }.sum(&:take)}"
trap('USR1') { puts 'signal' }
Process.kill('USR1', Process.pid)
sleep 0.05
def deeper(n) = deeper(n + 1) + 1
overflow = Thread.new do
  deeper(0)
rescue SystemStackError => e
  e.class
end
puts overflow.value
