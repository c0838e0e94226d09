"""Strands' A2AAgent: what a program that calls it gets."""

import httpx
from a2a.client import ClientConfig, ClientFactory
from strands.agent.a2a_agent import A2AAgent

from cases import HEADERS, LONG, URL, equal, run


def agent():
    http = httpx.AsyncClient(headers=HEADERS, timeout=30)
    return A2AAgent(endpoint=URL, a2a_client_factory=ClientFactory(ClientConfig(httpx_client=http)))


def text(result):
    return "".join(part.get("text", "") for part in result.message["content"])


async def card():
    equal((await agent().get_agent_card()).name, "peer", "name")


async def send():
    equal(text(await agent().invoke_async("hello")), "You said hello.", "answer")


async def stream():
    last = None
    async for event in agent().stream_async("hello"):
        last = event
    equal(text(last["result"]), "You said hello.", "answer")


async def long():
    equal(text(await agent().invoke_async("long")), LONG, "answer")


async def question():
    equal("Which colour?" in text(await agent().invoke_async("ask")), True, "the question is read")


async def approval():
    said = text(await agent().invoke_async("approve"))
    equal("To answer, send a message to this task with the data part" in said, True, "how to answer is read")


run({"card": card, "send": send, "stream": stream, "long": long, "input": question, "approval": approval})
