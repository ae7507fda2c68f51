"""Opens connections to a server that sends back what it gets: all are there at once, and each gets
three answers. For ci/programs; arguments: the port, and how many. Then tells the server to end."""

import socket
import sys

port, count = int(sys.argv[1]), int(sys.argv[2])


def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=120)


wrong = 0
connections = [connect() for _ in range(count)]
for turn in range(3):
    for number, connection in enumerate(connections):
        connection.sendall(b"%d of turn %d" % (number, turn))
    for number, connection in enumerate(connections):
        wrong += connection.recv(64) != b"%d of turn %d" % (number, turn)
print("wrong answers:", wrong)
for connection in connections:
    connection.close()
connect().sendall(b"\0")
