"""What both revisions of the Python SDK are asked in the same words: the card, and the key that signed it."""

import httpx
import jwt
from a2a.client import A2ACardResolver

from cases import HEADERS, URL

http = httpx.AsyncClient(headers=HEADERS, timeout=30)


async def card():
    return await A2ACardResolver(http, URL).get_agent_card()


def key(kid, jku):
    keys = httpx.get(jku).json()["keys"]
    return jwt.PyJWK(next(each for each in keys if each["kid"] == kid), algorithm="EdDSA")
