/**
 * The archive form: the same document in deterministic CBOR (RFC 8949: map keys by their encoded bytes, shortest
 * numbers, definite lengths, no tags). Hash and signatures are always those of the canonical JSON.
 */
import { decodeFirst, encode, rfc8949EncodeOptions } from 'cborg';
import { Fault } from '../../model/faults.ts';
import { RECEIPT_SCHEMA } from '../../model/words.ts';
import { canonicalJson } from '../seal/canonical-json.ts';

export const RECEIPT_CBOR = `application/vnd.harn.receipt+cbor; schema=${RECEIPT_SCHEMA}`;

/** Encodes the canonical text's value, so that both forms hold exactly the same value. */
export function encodeCbor(document: unknown): Uint8Array {
  return encode(JSON.parse(canonicalJson(document)), rfc8949EncodeOptions);
}

/** Refuses bytes that are not the one deterministic encoding of the document: one value, one archive. */
export function decodeCbor(bytes: Uint8Array): unknown {
  const [document, rest] = first(bytes);
  if (rest.length > 0) throw new Fault('invalid_request', 'this is not a CBOR receipt');
  return document;
}

/** Reads documents one after the other (RFC 8742), the form of an archive of many. Refuses what `decodeCbor` refuses. */
export function* decodeCborSequence(bytes: Uint8Array): Generator<unknown, void, undefined> {
  for (let rest = bytes; rest.length > 0; ) {
    const [document, left] = first(rest);
    yield document;
    rest = left;
  }
}

function first(bytes: Uint8Array): readonly [unknown, Uint8Array] {
  let document: unknown;
  let rest: Uint8Array;
  try {
    [document, rest] = decodeFirst(bytes, {
      strict: true,
      allowIndefinite: false,
      allowUndefined: false,
      allowInfinity: false,
      allowNaN: false,
      allowBigInt: false,
      rejectDuplicateMapKeys: true,
    });
  } catch (cause) {
    throw new Fault('invalid_request', 'this is not a CBOR receipt', { cause });
  }
  if (Buffer.compare(encodeCbor(document), bytes.subarray(0, bytes.length - rest.length)) !== 0) {
    throw new Fault('invalid_request', 'this CBOR is not in its deterministic form');
  }
  return [document, rest];
}
