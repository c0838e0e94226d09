/**
 * The OpenAPI document of an API, read again when it may have changed: a file when its time or size is another, an address after an
 * interval. A document that can no longer be read does not replace the last one that could.
 */
import { readFile, stat } from 'node:fs/promises';
import { parse as parseYaml } from 'yaml';
import { type Clock, Fault, isObject, type JsonObject, type Logger } from '../../../src/index.ts';
import { requestOut } from '../../../src/transport/outbound/public-fetch.ts';
import { named } from './outbound.ts';

export interface DocumentSource<T> {
  /** What was made of the document; the same object as long as the document is the same. */
  current(): Promise<T>;
  /** Calls `listener` when the document has changed, until the returned function is called. */
  watch(listener: () => void): () => void;
  close(): void;
}

interface SourceOptions<T> {
  readonly location: string;
  readonly timeoutMs: number;
  /** For a document at an address. */
  readonly refreshMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  made(document: JsonObject): T;
}

const DOCUMENT_LIMIT = 16 * 1024 * 1024;
/** A file is looked at no more often than this. */
const LOOK_MS = 1_000;

export function createDocumentSource<T extends object>(options: SourceOptions<T>): DocumentSource<T> {
  const { location, timeoutMs, clock, log, made } = options;
  const remote = /^https?:/.test(location);
  const everyMs = remote ? options.refreshMs : LOOK_MS;
  const listeners = new Set<() => void>();
  let known: { readonly value: T; readonly text: string; readonly mark: string } | undefined;
  let reading: Promise<T> | undefined;
  let lookedAt = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Says whether a file is still the one that was read, without reading it. */
  async function mark(): Promise<string> {
    if (remote) return '';
    const { mtimeMs, size, ino } = await stat(location);
    return `${mtimeMs} ${size} ${ino}`;
  }

  async function look(): Promise<T> {
    const before = known;
    const now = await mark();
    if (before && !remote && now === before.mark) return before.value;
    const text = remote ? await fetched(location, timeoutMs) : await readFile(location, 'utf8');
    if (before?.text === text) {
      known = { ...before, mark: now };
      return before.value;
    }
    const value = made(documentIn(text, location));
    known = { value, text, mark: now };
    if (before) for (const listener of [...listeners]) listener();
    return value;
  }

  function readAgain(): Promise<T> {
    lookedAt = Date.parse(clock.now());
    reading ??= look()
      .catch((cause) => {
        if (!known) throw cause;
        log.warn({ err: cause, document: location }, 'an OpenAPI document cannot be read again; the last one is used');
        return known.value;
      })
      .finally(() => {
        reading = undefined;
      });
    return reading;
  }

  async function current(): Promise<T> {
    const due = Date.parse(clock.now()) - lookedAt >= everyMs;
    if (!known || (due && !remote)) return await readAgain();
    // An address may be slow: callers do not wait for it while a document is known.
    if (due) void readAgain();
    return known.value;
  }

  return {
    current,
    watch(listener) {
      const own = () => listener();
      listeners.add(own);
      timer ??= setInterval(() => void current().catch(() => {}), everyMs).unref();
      return () => {
        listeners.delete(own);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
    close() {
      listeners.clear();
      clearInterval(timer);
    },
  };
}

function documentIn(text: string, location: string): JsonObject {
  // An alias is expanded where it stands, so a few lines could become gigabytes.
  const document: unknown = text.trimStart().startsWith('{')
    ? JSON.parse(text)
    : parseYaml(text, { maxAliasCount: 100 });
  const version = isObject(document) ? document.openapi : undefined;
  if (!isObject(document) || typeof version !== 'string' || !version.startsWith('3.'))
    throw new Fault('invalid_request', `${location} is not an OpenAPI document of version 3`);
  return document;
}

async function fetched(location: string, timeoutMs: number): Promise<string> {
  const headers = { accept: 'application/json, application/yaml, text/yaml, */*;q=0.1' };
  const wanted = { method: 'GET', headers, timeoutMs, limit: DOCUMENT_LIMIT };
  const { status, text } = await requestOut(location, named(location), wanted);
  if (status === 200) return text;
  throw new Fault('upstream_unavailable', `${new URL(location).host} answered ${status} instead of the document`);
}
