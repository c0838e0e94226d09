"""Checks what `tollbridge export DIR` wrote, with two packages and nothing of ours: pip install cryptography rfc8785
python verify.py DIR [OTHER_DIR] [KEY_ID ...]    "ok ...", or the first bad thing; without key ids all keys count"""
import base64, hashlib, json, pathlib, sys, rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def sha(data): return hashlib.sha256(data).digest()
def text(digest): return "sha256:" + digest.hex()
def need(holds, problem):
    if not holds: sys.exit("BAD " + problem)
def root(leaves):  # RFC 6962
    if len(leaves) < 2: return leaves[0] if leaves else sha(b"")
    half = 2 ** ((len(leaves) - 1).bit_length() - 1)
    return sha(b"\1" + root(leaves[:half]) + root(leaves[half:]))
def signed(value, signature, keys, name):  # gives the hash of the value; a key id is the hash of its key
    stated, key = text(sha(rfc8785.dumps(value))), keys.get(signature["key_id"], b"")
    need(signature["key_id"] == "ed25519:" + sha(key).hex()[:32], name + ": its key is not known or not trusted")
    try: Ed25519PublicKey.from_public_bytes(key).verify(base64.b64decode(signature["signature"][7:]), stated.encode())
    except Exception: need(False, name + ": it is not what was signed")
    return stated
def check(read, keys):  # gives the receipts by id, and the hashes of the events
    receipts, ends, leaves, tasks = {}, {}, {}, {}
    for receipt in map(json.loads, read("receipts.jsonl").splitlines()):  # signed, behind the one before it
        name, chain, signatures = receipt["receipt_id"], receipt["identifiers"]["workspace_ref"], receipt.pop("signatures", [])
        stated = receipt["chain"].pop("receipt_hash")
        need(signatures, name + ": it has no signature")
        need(signed(receipt, signatures[0], keys, name) == stated, name + ": its hash is another one")
        need(receipt["chain"]["previous_receipt_hash"] == ends.get(chain), name + ": it does not follow the one before it")
        receipts[name], ends[chain] = {**receipt, "hash": stated}, stated
    head, pruned = json.loads(read("tree-head.json")), json.loads(read("log-head.json"))["pruned"]
    signature, tree = head.pop("signature"), [sha(b"\0" + bytes.fromhex(each["hash"][7:])) for each in receipts.values()]
    signed({**head, "object": "receipt_tree_head"}, signature, keys, "tree-head.json")
    need((head["size"], head["root"]) == (len(tree), text(root(tree))), "tree-head.json: it is not of these receipts")
    for line in read("events.jsonl").splitlines():  # in canonical form: a line is what was hashed
        event, leaf, number = json.loads(line), sha(b"\0" + line), pruned["first"] + pruned["size"] + len(leaves)
        need(event["id"] == f"evt_{number:016}", f"evt_{number:016}: {event['id']} is in its place")
        own, leaves[event["id"]] = tasks.setdefault(event["resource"]["id"], []), leaf
        if event["sequence"] == len(own) + 1: own.append(leaf)  # unless the beginning of its task was pruned
    for name, receipt in receipts.items():  # sealed over exactly the events of its task; a replay counts none
        log = receipt["replay_input"]["materials"][0]
        count = log["metadata"].get("count", 0)
        own = tasks.get(log["metadata"]["task_id"], [])[:count]
        skip = count == 0 or (not own and pruned["size"] > 0)
        need(skip or text(root(own)) == log["sha256"], name + ": it was sealed over other events of its task")
    return receipts, leaves
def links_of(receipt): return receipt.get("metadata", {}).get("linked_receipts", [])
def check_links(ours, leaves, theirs):  # ours states theirs by its hash, and both the event of our log that gave the work
    given = [(receipt, link) for receipt in ours.values() for link in links_of(receipt) if link.get("receipt_id") in theirs]
    for receipt, link in given:
        name, callee = receipt["receipt_id"], theirs[link["receipt_id"]]
        task, event = receipt["identifiers"]["task_id"], leaves.get(link.get("event_id"))
        back = [each.get("event_hash") for each in links_of(callee) if each["task_id"] == task]
        need(link.get("receipt_hash") == callee["hash"], f"{name}: its link is to another {callee['receipt_id']}")
        need(link.get("event_hash") in back, f"{name}: {callee['receipt_id']} names another task or event")
        need(not event or link["event_hash"] == text(event), f"{name}: its link is to another {link.get('event_id')}")
    return len(given)
def main(check=check, check_links=check_links):
    trusted, gateways = [word for word in sys.argv[1:] if word.startswith("ed25519:")], []
    for folder in (pathlib.Path(word) for word in sys.argv[1:] if word not in trusted):
        jwks = json.loads((folder / "keys.json").read_bytes())["keys"]
        keys = {key["kid"]: base64.urlsafe_b64decode(key["x"] + "==") for key in jwks if key["kid"] in trusted or not trusted}
        gateways.append(check(lambda name: (folder / name).read_bytes(), keys))
    links = sum(check_links(*one, other) for one in gateways for other, _ in gateways if other is not one[0])
    need(links or len(gateways) == 1, "the two gateways name no receipt of each other")
    print("ok", *(f"{len(ours)} receipts, {len(leaves)} events," for ours, leaves in gateways), links, "links")
if __name__ == "__main__": main()
