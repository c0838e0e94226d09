"""The Python SDK 0.3, over JSON-RPC: it sends no version, and reads the card for readers that name none."""

import uuid

from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TextPart,
)
from a2a.utils.signing import create_signature_verifier

from cases import LONG, Webhook, equal, run
from python_sdk import card, http, key


def sending(text=None, data=None, **more):
    part = TextPart(text=text) if data is None else DataPart(data=data)
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=part)], **more)


async def client(streaming=True):
    return ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(await card())


async def events(message, streaming=True):
    return [event async for event in (await client(streaming)).send_message(message)]


def text_of(parts):
    return "".join(part.root.text for part in parts if part.root.kind == "text")


def streamed(came):
    updates = [update for _, update in came if isinstance(update, TaskArtifactUpdateEvent)]
    return "".join(text_of(update.artifact.parts) for update in updates)


async def read_card():
    read = await card()
    equal((read.name, read.protocol_version), ("peer", "0.3.0"), "name and version")
    create_signature_verifier(key, ["EdDSA"])(read)


async def send():
    ((task, _),) = await events(sending("hello"), streaming=False)
    equal(text_of(task.artifacts[0].parts), "You said hello.", "answer")


async def stream():
    came = await events(sending("hello"))
    equal(streamed(came), "You said hello.", "all updates joined")
    equal(text_of(came[-1][0].artifacts[0].parts), "You said hello.", "the task at the end")


async def long():
    ((task, _),) = await events(sending("long"), streaming=False)
    equal(text_of(task.artifacts[0].parts), LONG, "sent")
    equal(streamed(await events(sending("long"))), LONG, "streamed")


async def approval():
    task, update = (await events(sending("approve")))[-1]
    equal((update.status.state.value, update.final), ("input-required", True), "state")
    asked = [part.root.data for part in update.status.message.parts if part.root.kind == "data"][0]
    task, update = (await events(sending(data=asked["answer"], task_id=task.id)))[-1]
    equal(task.status.state.value, "completed", "state after the answer")


async def question():
    task, update = (await events(sending("ask")))[-1]
    equal(update.status.state.value, "input-required", "state")
    equal(streamed(await events(sending("blue", task_id=task.id))), "You chose blue.", "answer")


async def begun():
    client_ = await client()
    async for task, _ in client_.send_message(sending("slow")):
        return client_, task.id


async def cancel():
    client_, task = await begun()
    equal((await client_.cancel_task(TaskIdParams(id=task))).status.state.value, "canceled", "state")


async def resubscribe():
    client_, id_ = await begun()
    last = None
    async for task, update in client_.resubscribe(TaskIdParams(id=id_)):
        if last is None:
            await client_.cancel_task(TaskIdParams(id=id_))
        last = task.status.state.value
    equal(last, "canceled", "last state")


async def push():
    hook = Webhook()
    client_, task = await begun()
    config = PushNotificationConfig(url=hook.url)
    await client_.set_task_callback(TaskPushNotificationConfig(task_id=task, push_notification_config=config))
    await client_.cancel_task(TaskIdParams(id=task))
    await hook.until(lambda body: "canceled" in str(body))


run(
    {
        "card": read_card,
        "send": send,
        "stream": stream,
        "long": long,
        "approval": approval,
        "input": question,
        "cancel": cancel,
        "resubscribe": resubscribe,
        "push": push,
    }
)
