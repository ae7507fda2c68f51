"""The list of requests by http.client, requests and aiohttp: `clients.py URL`."""

import asyncio
import http.client
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import aiohttp
import requests

ROUNDS, AT_ONCE = 3, 20


def read_list():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requests")
    with open(path) as lines:
        rows = [line.split() for line in lines if not line.startswith("#")]
    return [(method, target, int(size), framing, int(status), answer)
            for method, target, size, framing, status, answer in rows]


LIST = read_list()


def pieces(size):
    """Returns a body in pieces, so that a client sends it in chunks."""
    return [b"x" * min(50_000, size - start) for start in range(0, size, 50_000)]


async def async_pieces(size):
    for piece in pieces(size):
        yield piece


def check(client, row, status, body):
    method, target, size, _, expected, answer = row
    if answer == "echo":
        parts = (f'"length":{size},', f'"method":"{method}"', f'"target":"{target}"')
        fine = all(part in body.decode() for part in parts)
    else:
        fine = len(body) == int(answer)
    if status != expected or not fine:
        raise SystemExit(f"FAILED: {client}: {row}: {status}, {len(body)} bytes: {body[:200]}")


def by_http_client(url):
    parts = urlsplit(url)
    client = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    for row in LIST * ROUNDS:
        method, target, size, framing, *_ = row
        body = iter(pieces(size)) if framing == "chunked" else b"x" * size
        client.request(method, target, body or None, encode_chunked=False)
        answer = client.getresponse()
        check("http.client", row, answer.status, answer.read())


def by_requests(url):
    with requests.Session() as session:
        for row in LIST * ROUNDS:
            method, target, size, framing, *_ = row
            body = iter(pieces(size)) if framing == "chunked" else b"x" * size
            answer = session.request(method, url + target, data=body, timeout=120)
            check("requests", row, answer.status_code, answer.content)


async def by_aiohttp(url):
    async def one_list():
        for row in LIST * ROUNDS:
            method, target, size, framing, *_ = row
            body = async_pieces(size) if framing == "chunked" else b"x" * size
            async with session.request(method, url + target, data=body) as answer:
                check("aiohttp", row, answer.status, await answer.read())

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*[one_list() for _ in range(AT_ONCE)])


def main():
    url = sys.argv[1]
    for client in (by_http_client, by_requests):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for one in [pool.submit(client, url) for _ in range(AT_ONCE)]:
                one.result()
        print(f"{client.__name__[3:]}: {len(LIST) * ROUNDS * AT_ONCE} requests")
    asyncio.run(by_aiohttp(url))
    print(f"aiohttp: {len(LIST) * ROUNDS * AT_ONCE} requests")


if __name__ == "__main__":
    main()
