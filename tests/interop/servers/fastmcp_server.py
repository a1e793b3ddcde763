"""A server on FastMCP: on stdio, or with `http` on a port of the loopback that it says."""

import socket
import sys

from fastmcp import Context, FastMCP

server = FastMCP("fastmcp", instructions="Ask it anything.", version="1")


@server.tool
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers"""
    return {"sum": a + b}


@server.tool
def fail() -> str:
    """Always fails"""
    raise ValueError("it broke")


@server.tool
async def count(context: Context) -> str:
    """Counts to three, saying so"""
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "three"


@server.resource("note://it", mime_type="text/plain")
def note() -> str:
    return "first"


@server.resource("page://{chapter}/{page}")
def page(chapter: str, page: str) -> str:
    return f"{chapter}.{page}"


@server.prompt
def greeting(language: str) -> str:
    """A greeting"""
    return f"Say hello in {language}"


if sys.argv[1:] == ["http"]:
    # Uvicorn does not say which port it was given, so one is found before.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    print(f"listening on {port}", flush=True)
    server.run("http", host="127.0.0.1", port=port, show_banner=False)
else:
    server.run("stdio", show_banner=False)
