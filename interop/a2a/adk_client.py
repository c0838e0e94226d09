"""ADK's RemoteA2aAgent in a runner: what a person who talks to it reads."""

import httpx
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

from cases import HEADERS, LONG, URL, equal, run


async def turns(*said):
    """What the agent said in each turn of one conversation."""
    http = httpx.AsyncClient(headers=HEADERS, timeout=30)
    agent = RemoteA2aAgent(
        name="peer", agent_card=f"{URL}.well-known/agent-card.json", httpx_client=http
    )
    runner = InMemoryRunner(agent=agent, app_name="interop")
    session = await runner.session_service.create_session(app_name="interop", user_id="ana")
    answers = []
    for text in said:
        message = types.Content(role="user", parts=[types.Part(text=text)])
        heard = []
        async for event in runner.run_async(user_id="ana", session_id=session.id, new_message=message):
            if event.error_message:
                raise AssertionError(event.error_message)
            if event.content and not event.partial:
                heard += [part.text for part in event.content.parts if part.text and not part.thought]
                # It puts a question as a call of a function that the person answers.
                calls = [part.function_call for part in event.content.parts if part.function_call]
                heard += [str(call.args.get("input_required", "")) for call in calls]
        answers.append("".join(heard))
    return answers


async def send():
    equal((await turns("hello"))[0], "You said hello.", "answer")


async def long():
    equal((await turns("long"))[0], LONG, "answer")


async def question():
    first, second = await turns("ask", "blue")
    equal("Which colour?" in first, True, "the question is read")
    equal(second, "You chose blue.", "answer")


async def approval():
    (first,) = await turns("approve")
    equal("To answer, send a message to this task with the data part" in first, True, "how to answer is read")


run({"card and send": send, "long": long, "input": question, "approval": approval})
