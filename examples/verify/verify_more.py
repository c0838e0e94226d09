"""What verify.py leaves out: every event against the signed head of the log, also where the oldest were pruned; receipts
the log names; replays; links that one side alone states; links of single calls. Called as verify.py, from beside it."""
import json, verify
from verify import links_of, need, sha, signed, text

def root_of(nodes):  # RFC 6962 over (number of leaves, hash): subtrees of one size are joined at once, the others at the end
    peaks = []
    for size, node in nodes:
        while peaks and peaks[-1][0] == size: size, node = 2 * size, sha(b"\1" + peaks.pop()[1] + node)
        peaks.append((size, node))
    top = peaks.pop()[1] if peaks else sha(b"")
    while peaks: top = sha(b"\1" + peaks.pop()[1] + top)
    return top
def check(read, trusted):
    receipts, leaves, keys = verify.check(read, trusted)
    for event in map(json.loads, read("events.jsonl").splitlines()):
        missing = event["event"] == "receipt.issued" and event["receipt_id"] not in receipts
        need(not missing, event["id"] + ": the receipt it names is missing")
    roots = {}
    for name, log in ((name, receipt["replay_input"]["materials"][0]) for name, receipt in receipts.items()):
        stated = roots.setdefault(log["metadata"]["task_id"], log.get("sha256"))
        need(stated == log.get("sha256"), name + ": it replays other events than its source was sealed over")
    log = json.loads(read("log-head.json"))
    head, pruned, signature = log["head"], log["pruned"], log["head"].pop("signature")
    sizes = [2**bit for bit in range(63, -1, -1) if pruned["size"] & 2**bit]
    signed({**head, "object": "event_tree_head"}, [signature], keys, "log-head.json")
    nodes = [(size, bytes.fromhex(peak[7:])) for size, peak in zip(sizes, pruned["frontier"])]  # of pruned events
    top = text(root_of(nodes + [(1, leaf) for leaf in leaves.values()]))
    need((head["size"], head["root"]) == (pruned["size"] + len(leaves), top), "log-head.json: it is not of these events")
    return receipts, leaves, keys
def check_links(ours, leaves, theirs):
    found = verify.check_links(ours, leaves, theirs)
    tasks = {receipt["identifiers"]["task_id"]: receipt for receipt in ours.values()}
    claims = [(callee, link, tasks[link["task_id"]]) for callee in theirs.values() for link in links_of(callee)
              if link["direction"] == "caller" and link["task_id"] in tasks]
    for callee, claim, caller in claims:
        name, call, task = callee["receipt_id"], claim.get("tool_call_id"), callee["identifiers"]["task_id"]
        same = [link for link in links_of(caller) if link.get("tool_call_id") == call]
        ends = [link.get("receipt_id", link["task_id"]) for link in same]
        # A call that was not answered is stated by the event that gave it, and nothing else.
        unanswered = [link.get("event_hash") for link in same if link.get("checked") == "unanswered"]
        named = claim.get("event_hash") in unanswered or name in ends or task in ends
        # A caller that was cut off in the middle of a call never learned whose receipt to name.
        made = [each.get("metadata", {}).get("outcome") for each in caller["side_effects"]["tool_calls"] if each["call_id"] == call]
        need(named or "unknown" in made, f"{name}: {caller['receipt_id']} does not name it")
        event = leaves.get(claim.get("event_id"))
        need(not event or claim["event_hash"] == text(event), f"{name}: it was given by another {claim.get('event_id')}")
        known = [each["call_id"] for each in callee["side_effects"]["tool_calls"]]
        need(call is None or claim["call_id"] in known, f"{name}: it accounts for no call {claim.get('call_id')}")
        found += 1 if named and name not in ends else 0  # those that name a receipt were counted before
    return found
if __name__ == "__main__": verify.main(check, check_links)
