"""Sends mails to an SMTP server from 1,000 clients at once, one connection per mail.

    mail-clients.py PORT SECONDS CLIENTS SLOW

A fast client sends a mail of 2 kB, waits a second, and comes again. A slow one sends a line each half
second, 20 of them. Prints the fast clients' mails per second, and the percentiles 50 and 99 of the
time from the connection to the answer that the mail is stored, in ms. A mail that is not stored at
the end counts with its age.
"""

import heapq, select, socket, sys, time

port, seconds, clients, slow = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
BODY = b"Subject: a mail\r\n\r\n" + b"x" * 70 + b"\r\n"
STEPS = [b"HELO here\r\n", b"MAIL FROM:<a@example.com>\r\n", b"RCPT TO:<b@example.com>\r\n", b"DATA\r\n",
    BODY * 23 + b".\r\n", b"QUIT\r\n"]
LINES = [b"x" * 70 + b"\r\n"] * 20 + [b".\r\n"]
poll, timers, times = select.epoll(), [], []


class Client:
    def __init__(self, slow):
        self.slow = slow
        self.socket = None

    def connect(self):
        self.since, self.step, self.line = time.monotonic(), 0, 0
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))
        by_descriptor[self.socket.fileno()] = self
        poll.register(self.socket, select.EPOLLIN)

    def readable(self):
        """The server has answered: the next step."""
        if not (answer := self.socket.recv(1000)) or answer[:1] not in b"23":
            if self.step < len(STEPS):
                sys.exit(f"the server answers {answer} before step {self.step}")
            poll.unregister(self.socket)
            self.socket.close()
            self.socket = None
            return wait(1, self.connect)
        if self.step == 5 and not self.slow:
            times.append(time.monotonic() - self.since)
        if self.step < len(STEPS):
            if self.step == 4 and self.slow:
                self.send_line()
            else:
                self.socket.send(STEPS[self.step])
        self.step += 1

    def send_line(self):
        self.socket.send(LINES[self.line])
        self.line += 1
        if self.line < len(LINES):
            wait(0.5, self.send_line)


def wait(pause, then):
    heapq.heappush(timers, (time.monotonic() + pause, len(timers), id(then), then))


by_descriptor = {}
start = time.monotonic()
all_clients = [Client(i < slow) for i in range(clients)]
for i, client in enumerate(all_clients):  # all of them within the first second, the slow ones first
    wait(i / clients, client.connect)
while (now := time.monotonic()) < start + seconds:
    while timers and timers[0][0] <= now:
        heapq.heappop(timers)[-1]()
    for descriptor, _ in poll.poll(max(0, min(timers[0][0] - now, 1)) if timers else 1):
        by_descriptor[descriptor].readable()
stored = len(times)
times += [now - c.since for c in all_clients if not c.slow and c.socket and c.step <= 5]
times.sort()
print(f"{stored / seconds:.0f} {times[len(times) // 2] * 1000:.0f} {times[len(times) * 99 // 100] * 1000:.0f} {stored}")
