"""The Python SDK 1.x, over JSON-RPC and over HTTP+JSON: every operation a peer uses."""

import uuid

from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from cases import LONG, Webhook, equal, run
from python_sdk import card, http, key


def sending(text=None, data=None, **more):
    part = Part(text=text) if data is None else Part(data=ParseDict(data, Value()))
    return SendMessageRequest(message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[part], **more))


def text_of(parts):
    return "".join(part.text for part in parts)


def made(binding):
    async def client(streaming):
        config = ClientConfig(
            streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding], use_client_preference=True
        )
        return ClientFactory(config).create(await card())

    async def events(request, streaming=True):
        return [event async for event in (await client(streaming)).send_message(request)]

    def state(event):
        return (event.task if event.HasField("task") else event.status_update).status.state

    async def read_card():
        read = await card()
        equal(read.name, "peer", "name")
        create_signature_verifier(key, ["EdDSA"])(read)

    async def send():
        (event,) = await events(sending("hello"), streaming=False)
        equal(text_of(event.task.artifacts[0].parts), "You said hello.", "answer")

    async def stream():
        came = await events(sending("hello"))
        texts = [text_of(e.artifact_update.artifact.parts) for e in came if e.HasField("artifact_update")]
        equal("".join(texts), "You said hello.", "all updates joined")
        equal(came[-1].status_update.status.state, TaskState.TASK_STATE_COMPLETED, "last state")

    async def long():
        (whole,) = await events(sending("long"), streaming=False)
        equal(text_of(whole.task.artifacts[0].parts), LONG, "sent")
        came = await events(sending("long"))
        texts = [text_of(e.artifact_update.artifact.parts) for e in came if e.HasField("artifact_update")]
        equal("".join(texts), LONG, "streamed")

    async def approval():
        came = await events(sending("approve"))
        equal(state(came[-1]), TaskState.TASK_STATE_INPUT_REQUIRED, "state")
        status = came[-1].status_update
        asked = [MessageToDict(part.data) for part in status.status.message.parts if part.HasField("data")][0]
        came = await events(sending(data=asked["answer"], task_id=status.task_id))
        equal(state(came[-1]), TaskState.TASK_STATE_COMPLETED, "state after the answer")

    async def question():
        came = await events(sending("ask"))
        equal(state(came[-1]), TaskState.TASK_STATE_INPUT_REQUIRED, "state")
        came = await events(sending("blue", task_id=came[-1].status_update.task_id))
        texts = [text_of(e.artifact_update.artifact.parts) for e in came if e.HasField("artifact_update")]
        equal("".join(texts), "You chose blue.", "answer")

    async def cancel():
        client_ = await client(True)
        async for event in client_.send_message(sending("slow")):
            if event.HasField("task"):
                gone = await client_.cancel_task(CancelTaskRequest(id=event.task.id))
                equal(gone.status.state, TaskState.TASK_STATE_CANCELED, "state")

    async def resubscribe():
        client_ = await client(True)
        async for event in client_.send_message(sending("slow")):
            if event.HasField("task"):
                task = event.task.id
                break
        states = []
        async for event in client_.subscribe(SubscribeToTaskRequest(id=task)):
            if event.HasField("task"):
                await client_.cancel_task(CancelTaskRequest(id=task))
            elif event.HasField("status_update"):
                states.append(event.status_update.status.state)
        equal(states[-1], TaskState.TASK_STATE_CANCELED, "last state")

    async def push():
        hook = Webhook()
        client_ = await client(True)
        async for event in client_.send_message(sending("slow")):
            if event.HasField("task"):
                task = event.task.id
                break
        config = TaskPushNotificationConfig(task_id=task, url=hook.url)
        await client_.create_task_push_notification_config(config)
        await client_.cancel_task(CancelTaskRequest(id=task))
        await hook.until(lambda body: "CANCELED" in str(body))
        got = await client_.get_task(GetTaskRequest(id=task))
        equal(got.status.state, TaskState.TASK_STATE_CANCELED, "state")

    cases = {
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
    return {f"{binding} {name}": case for name, case in cases.items()}


run({**made("JSONRPC"), **made("HTTP+JSON")})
