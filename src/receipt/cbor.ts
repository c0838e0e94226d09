/**
 * The archive form: the same document in deterministic CBOR (RFC 8949: map keys by their encoded bytes, shortest
 * numbers, definite lengths, no tags). Hash and signatures are always those of the canonical JSON.
 */
import { decode, encode, rfc8949EncodeOptions } from 'cborg';
import { Fault } from '../model/faults.ts';
import { RECEIPT_SCHEMA } from '../model/words.ts';
import { canonicalJson } from './canonical-json.ts';

export const RECEIPT_CBOR = `application/vnd.harn.receipt+cbor; schema=${RECEIPT_SCHEMA}`;

/** By way of the canonical text, so that both forms hold exactly the same value. */
export function encodeCbor(document: unknown): Uint8Array {
  return encode(JSON.parse(canonicalJson(document)), rfc8949EncodeOptions);
}

/** The document. Bytes that are not the one deterministic form of it are refused: one value, one archive. */
export function decodeCbor(bytes: Uint8Array): unknown {
  let document: unknown;
  try {
    document = decode(bytes, {
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
  if (Buffer.compare(encodeCbor(document), bytes) !== 0) {
    throw new Fault('invalid_request', 'this CBOR is not in its deterministic form');
  }
  return document;
}
