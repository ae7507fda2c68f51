"""The list of requests by httpx, by HTTP/2, all on one connection: `http2.py URL CERTIFICATE`."""

import asyncio
import ssl
import sys

import httpx
from clients import AT_ONCE, LIST, ROUNDS, async_pieces, check


async def main():
    url, certificate = sys.argv[1:]
    trust = ssl.create_default_context(cafile=certificate)
    one = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(http1=False, http2=True, verify=trust, limits=one, timeout=120) as client:

        async def one_list():
            for row in LIST * ROUNDS:
                method, target, size, framing, *_ = row
                body = async_pieces(size) if framing == "chunked" else b"x" * size
                answer = await client.request(method, url + target, content=body)
                assert answer.http_version == "HTTP/2", answer.http_version
                check("httpx", row, answer.status_code, answer.content)

        await asyncio.gather(*[one_list() for _ in range(AT_ONCE)])
    print(f"httpx {httpx.__version__}, HTTP/2: {len(LIST) * ROUNDS * AT_ONCE} requests")


asyncio.run(main())
