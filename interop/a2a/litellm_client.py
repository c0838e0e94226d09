"""LiteLLM as a client of A2A agents. It has no operations for cancel, subscriptions and push."""

import uuid

from a2a.compat.v0_3.types import MessageSendParams, SendMessageRequest, SendStreamingMessageRequest
from litellm.a2a_protocol import asend_message, asend_message_streaming, create_a2a_client

from cases import HEADERS, LONG, URL, equal, run


def params(text=None, data=None, **more):
    part = {"kind": "text", "text": text} if data is None else {"kind": "data", "data": data}
    return MessageSendParams(message={"role": "user", "parts": [part], "messageId": uuid.uuid4().hex, **more})


async def client():
    return await create_a2a_client(base_url=URL, extra_headers=HEADERS)


async def sent(**message):
    request = SendMessageRequest(id=str(uuid.uuid4()), params=params(**message))
    return (await asend_message(a2a_client=await client(), request=request)).model_dump(mode="json", exclude_none=True)


async def streamed(**message):
    request = SendStreamingMessageRequest(id=str(uuid.uuid4()), params=params(**message))
    chunks = asend_message_streaming(a2a_client=await client(), request=request)
    return [chunk.model_dump(mode="json", exclude_none=True) async for chunk in chunks]


def texts(parts):
    return "".join(part.get("text", "") for part in parts)


def artifacts(chunks):
    """It gives updates, or only the task at the end: all of it is read."""
    results = [chunk["result"] for chunk in chunks]
    made = [each for result in results for each in [result.get("artifact"), *result.get("artifacts", [])] if each]
    return "".join(texts(each["parts"]) for each in made)


async def send():
    equal(texts((await sent(text="hello"))["result"]["artifacts"][0]["parts"]), "You said hello.", "answer")


async def stream():
    equal(artifacts(await streamed(text="hello")), "You said hello.", "answer")


async def long():
    equal(texts((await sent(text="long"))["result"]["artifacts"][0]["parts"]), LONG, "sent")
    equal(artifacts(await streamed(text="long")), LONG, "streamed")


async def approval():
    task = (await sent(text="approve"))["result"]
    equal(task["status"]["state"], "input-required", "state")
    asked = [part["data"] for part in task["status"]["message"]["parts"] if "data" in part][0]
    after = (await sent(data=asked["answer"], taskId=task["id"]))["result"]
    equal(after["status"]["state"], "completed", "state after the answer")


async def question():
    chunks = await streamed(text="ask")
    last = chunks[-1]["result"]
    equal(last["status"]["state"], "input-required", "state")
    after = (await sent(text="blue", taskId=last.get("taskId") or last["id"]))["result"]
    equal(texts(after["artifacts"][0]["parts"]), "You chose blue.", "answer")


async def card():
    equal((await client())._litellm_agent_card.name, "peer", "name")


run({"card": card, "send": send, "stream": stream, "long": long, "approval": approval, "input": question})
