"""A server on the Python SDK: on stdio, or with `http` on a port of the loopback that it says."""

import socket
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer(name="python-sdk", title="Python SDK", version="1", instructions="Ask it anything.")


class Sum(BaseModel):
    sum: int


class Name(BaseModel):
    name: str


@server.tool(title="Add")
def add(a: int, b: int) -> Sum:
    """Adds two numbers"""
    return Sum(sum=a + b)


@server.tool()
def fail() -> str:
    """Always fails"""
    raise ToolError("it broke")


@server.tool()
async def count(context: Context) -> str:
    """Counts to three, saying so"""
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "three"


def ask_name() -> Elicit[Name]:
    return Elicit("Your name?", Name)


def ask_model() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))
    return Sample([question], max_tokens=50)


def ask_folders() -> ListRoots:
    return ListRoots()


@server.tool()
def ask(name: Annotated[Name, Resolve(ask_name)]) -> str:
    """Asks for a name"""
    return f"hello {name.name}"


@server.tool(name="folders-and-thoughts")
def folders_and_thoughts(
    folders: Annotated[ListRootsResult, Resolve(ask_folders)],
    thought: Annotated[CreateMessageResult, Resolve(ask_model)],
) -> str:
    """Asks for the folders and a model"""
    names = ",".join(root.name or "" for root in folders.roots)
    return f"{names}: {thought.content.text}"


@server.resource("note://it", mime_type="text/plain")
def note() -> str:
    return "first"


@server.resource("page://{chapter}/{page}")
def page(chapter: str, page: str) -> str:
    return f"{chapter}.{page}"


@server.prompt(title="Greeting")
def greeting(language: str) -> str:
    return f"Say hello in {language}"


if sys.argv[1:] == ["http"]:
    # Uvicorn does not say which port it was given, so one is found before.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    print(f"listening on {port}", flush=True)
    server.run("streamable-http", host="127.0.0.1", port=port)
else:
    server.run("stdio")
