"""Checks what `tollbridge export DIR` wrote, with two packages and nothing of ours: pip install cryptography rfc8785
python verify.py DIR [OTHER_DIR] [KEY_ID ...]    "ok ...", or the first bad thing; without key ids all keys count"""
import base64, hashlib, json, pathlib, sys, rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def sha(data): return hashlib.sha256(data).digest()
def text(digest): return "sha256:" + digest.hex()
def need(holds, problem): holds or sys.exit("BAD " + problem)
def root(leaves):  # RFC 6962
    half = 2 ** ((len(leaves) - 1).bit_length() - 1) if len(leaves) > 1 else 0
    return sha(b"\1" + root(leaves[:half]) + root(leaves[half:])) if half else leaves[0] if leaves else sha(b"")
def signed(value, signatures, keys, name):  # gives the hash of the value; a key id is the hash of its key
    stated = text(sha(rfc8785.dumps(value)))
    try: keys[signatures[0]["key_id"]].verify(base64.b64decode(signatures[0]["signature"][7:]), stated.encode())
    except Exception: need(False, name + ": no trusted key signed it as it is")
    return stated
def check(read, trusted):  # gives the receipts by id, the hashes of the events, and the keys
    raw = {base64.urlsafe_b64decode(key["x"] + "==") for key in json.loads(read("keys.json"))["keys"]}
    keys = {name: Ed25519PublicKey.from_public_bytes(key) for key in raw if (name := "ed25519:" + sha(key).hex()[:32]) in (trusted or [name])}
    receipts, ends, leaves, tasks = {}, {}, {}, {}
    for receipt in map(json.loads, read("receipts.jsonl").splitlines()):
        name, chain, stated = receipt["receipt_id"], receipt["identifiers"]["workspace_ref"], receipt["chain"].pop("receipt_hash")
        need(signed(receipt, receipt.pop("signatures"), keys, name) == stated, name + ": its hash is another one")
        need(receipt["chain"]["previous_receipt_hash"] == ends.get(chain), name + ": it does not follow the one before it")
        receipts[name], ends[chain] = {**receipt, "hash": stated}, stated
    head, pruned = json.loads(read("tree-head.json")) | {"object": "receipt_tree_head"}, json.loads(read("log-head.json"))["pruned"]
    signed(head, [head.pop("signature")], keys, "tree-head.json")
    tree = [sha(b"\0" + bytes.fromhex(receipt["hash"][7:])) for receipt in receipts.values()]
    need((head["size"], head["root"]) == (len(tree), text(root(tree))), "tree-head.json: it is not of these receipts")
    for number, line in enumerate(read("events.jsonl").splitlines(), pruned["first"] + pruned["size"]):
        event, name, leaf = json.loads(line), f"evt_{number:016}", sha(b"\0" + line)
        need(event["id"] == name, f"{name}: {event['id']} is in its place")
        leaves[name] = tasks.setdefault(event["resource"]["id"], {})[event["sequence"]] = leaf
    for name, log in ((name, receipt["replay_input"]["materials"][0]) for name, receipt in receipts.items()):
        task, count = tasks.get(log["metadata"]["task_id"], {}), log["metadata"].get("count", 0)  # a replay counts none
        same = text(root(list(task.values())[:count])) == log["sha256"] or (1 not in task and pruned["size"] > 0)
        need(same or count == 0, name + ": it was sealed over other events of its task")
    return receipts, leaves, keys
def links_of(receipt): return receipt.get("metadata", {}).get("linked_receipts", [])
def check_links(ours, leaves, theirs):  # ours states theirs by its hash, and both the event of our log that gave the work
    found = [(caller, theirs[link["receipt_id"]], link) for caller in ours.values() for link in links_of(caller) if link.get("receipt_id") in theirs]
    for caller, callee, link in found:
        stated, event = link.get("event_hash"), leaves.get(link.get("event_id"))
        back = [each.get("event_hash") for each in links_of(callee) if each["task_id"] == caller["identifiers"]["task_id"]]
        same = link.get("receipt_hash") == callee["hash"] and stated in back and (not event or text(event) == stated)
        need(same, f"{caller['receipt_id']}: its link to {callee['receipt_id']} does not hold")
    return len(found)
def main(check=check, check_links=check_links):
    folders, trusted = ([word for word in sys.argv[1:] if word.startswith("ed25519:") is keys] for keys in (False, True))
    gateways = [check(lambda name: (pathlib.Path(folder) / name).read_bytes(), trusted) for folder in folders]
    links = sum(check_links(one[0], one[1], other[0]) for one in gateways for other in gateways if other is not one)
    need(links or len(gateways) == 1, "the two gateways name no receipt of each other")
    print("ok", *(f"{len(ours)} receipts, {len(leaves)} events," for ours, leaves, _ in gateways), links, "links")
if __name__ == "__main__": main()
