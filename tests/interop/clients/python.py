"""Drives the Python SDK's client over one mode and prints what came of it as one line of JSON.

Usage: python python.py <file with JSON of {mode, target, echo_text, patience_ms, total_ms}>
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from pathlib import Path

from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

given = json.loads(Path(sys.argv[1]).read_text())
mode, target, echo_text = given["mode"], given["target"], given["echo_text"]
patience = given["patience_ms"] / 1000
logging.disable(logging.CRITICAL)
nowhere = open(os.devnull, "w")


class Wrong(Exception):
    """What the table calls a failure."""


async def within(seconds, work, what):
    """The result of the work, or Wrong when it takes too long."""
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await work
    except TimeoutError:
        if timer.expired():
            raise Wrong(f"{what} took more than {seconds} s") from None
        raise


def server():
    if "command" in target:
        return stdio_client(StdioServerParameters(command=target["command"], args=target["args"]), errlog=nowhere)
    if mode["name"].startswith("old-sse"):
        return sse_client(target["url"])
    return target["url"]


async def pages(fetch, field):
    found, cursor = [], None
    while True:
        page = await fetch(cursor=cursor)
        found.extend(getattr(page, field))
        cursor = page.next_cursor
        if cursor is None:
            return found


class Connection:
    """A client, and its tools once it is entered."""

    def __init__(self):
        self.stack = contextlib.AsyncExitStack()

    async def open(self):
        client = Client(server(), read_timeout_seconds=patience)
        self.client = await self.stack.enter_async_context(client)
        self.tools = [tool.name for tool in await pages(self.client.list_tools, "tools")]

    async def close(self):
        await self.stack.aclose()


def text_of(result):
    texts = [block.text for block in result.content or [] if block.type == "text"]
    if result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, separators=(",", ":"), ensure_ascii=False))
    return "\n".join(texts)


async def call(client, tool, arguments):
    async def progress(*_):
        pass

    return await client.call_tool(tool, arguments, read_timeout_seconds=patience, progress_callback=progress)


async def echo(client):
    result = await within(patience + 2, call(client, "echo", {"text": echo_text}), "echo")
    if text_of(result) != echo_text:
        raise Wrong(f"echo gave {str(result)[:200]}")


def check_tools(tools):
    wanted = mode["tools"]
    if "exactly" in wanted:
        # As sets: what to do with a name that is there twice is the app's, not the SDK's.
        fine = set(tools) == set(wanted["exactly"])
    else:
        fine = all(name in tools for name in wanted["including"])
    if not fine:
        raise Wrong(f"the tools are {str(tools)[:200]}")


async def listed(client, offer):
    if offer == "prompts":
        return [one.name for one in await pages(client.list_prompts, "prompts")]
    if offer == "resources":
        return [str(one.uri) for one in await pages(client.list_resources, "resources")]
    return [one.uri_template for one in await pages(client.list_resource_templates, "resource_templates")]


async def judge(connections):
    expect = mode["expect"]
    limit = expect["within_ms"] / 1000
    connection = Connection()
    connections.append(connection)
    if expect["kind"] in ("fails_plainly", "ends"):
        failed = False
        try:
            await within(limit, connection.open(), "connecting")
        except Wrong:
            raise
        except Exception:
            failed = True
        if expect["kind"] == "fails_plainly" and not failed:
            raise Wrong("it connected")
        return
    await within(10 if "call" in expect else limit, connection.open(), "connecting")
    check_tools(connection.tools)
    client = connection.client
    if "call" not in expect:
        await echo(client)
        if expect["kind"] == "lists":
            names = await within(limit, listed(client, expect["offer"]), "listing")
            if set(names) != set(expect["names"]):
                raise Wrong(f"the list is {str(names)[:200]}")
        return
    error = result = None
    try:
        result = await within(limit, call(client, expect["call"]["tool"], expect["call"]["arguments"]), "the call")
    except Wrong:
        raise
    except Exception as caught:
        error = caught
    if expect["kind"] == "call_fails" and result is not None and not result.is_error:
        raise Wrong(f"the call gave {str(result)[:200]}")
    if expect["kind"] == "call_works":
        if error is not None:
            raise Wrong(f"the call failed: {error}")
        if expect["text"] not in text_of(result):
            raise Wrong(f"the call gave {str(result)[:200]}")
    if expect["then"] == "echo_after_restart":
        connections.remove(connection)
        with contextlib.suppress(Exception):
            await within(3, connection.close(), "closing")
        again = Connection()
        connections.append(again)
        await within(10, again.open(), "connecting again")
        await echo(again.client)
    else:
        await echo(client)


async def main():
    connections, why, begun = [], "", time.monotonic()
    try:
        await judge(connections)
    except BaseException as error:  # A cancelled scope of the SDK's own arrives as one of those.
        why = f"{type(error).__name__}: {error}" if not isinstance(error, Wrong) else str(error)
    for connection in connections:
        try:
            await within(6, connection.close(), "closing")
        except Wrong as error:
            why = why or str(error)
        except BaseException:
            pass
    ms = int((time.monotonic() - begun) * 1000)
    print(json.dumps({"ok": not why, "why": why[:300], "ms": ms}), flush=True)
    # What the SDK may have left running must not keep the process.
    os._exit(0)


asyncio.run(main())
