// A server with one std::thread per connection, and its clients.
//
//     c++ -std=c++17 echo.cpp $(pkg-config --cflags --libs pirn) -o echo
#include <pirn.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

constexpr int connections = 500;

static int checked(int result, const char *what)
{
	if (result < 0)
		throw std::runtime_error(what);
	return result;
}

static void echo(int fd)
{
	char bytes[64];
	for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;)
		checked(write(fd, bytes, n), "write");
	close(fd);
}

int main()
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t length = sizeof address;
	auto *name = reinterpret_cast<sockaddr *>(&address);
	int listener = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
	checked(bind(listener, name, length), "bind");
	checked(listen(listener, connections), "listen");
	checked(getsockname(listener, name, &length), "getsockname");

	std::thread server([&] {
		std::vector<std::thread> all;
		for (int i = 0; i < connections; i++)
			all.emplace_back(echo, checked(accept(listener, nullptr, nullptr), "accept"));
		for (auto &thread : all)
			thread.join();
	});
	std::atomic<int> answers{0}, virtuals{0};
	std::vector<std::thread> clients;
	for (int i = 0; i < connections; i++)
		clients.emplace_back([&, i] {
			virtuals += pirn_is_virtual(pthread_self());
			std::string text = "hello " + std::to_string(i);
			int fd = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
			checked(connect(fd, name, length), "connect");
			checked(write(fd, text.data(), text.size()), "write");
			char bytes[64];
			ssize_t n = checked(read(fd, bytes, sizeof bytes), "read");
			answers += std::string(bytes, n) == text;
			close(fd);
		});
	for (auto &thread : clients)
		thread.join();
	server.join();
	std::printf("%d answers to %d virtual threads\n", answers.load(), virtuals.load());
}
