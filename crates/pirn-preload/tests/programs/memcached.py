# Twenty clients of a memcached on the port that is given. For ci/programs.
import socket, sys, threading

def client(number, good):
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as connection:
        stream = connection.makefile('rwb')
        for i in range(300):
            value = b'%d.%d' % (number, i) * 50
            stream.write(b'set k%d.%d 0 0 %d\r\n%s\r\nget k%d.%d\r\n'
                         % (number, i, len(value), value, number, i))
            stream.flush()
            lines = [stream.readline() for _ in range(4)]
            good[number] += lines[0] == b'STORED\r\n' and lines[2] == value + b'\r\n'

good = [0] * 20
clients = [threading.Thread(target=client, args=(number, good)) for number in range(20)]
for thread in clients: thread.start()
for thread in clients: thread.join()
print(sum(good), 'values')
