/** Reads the whole list of a server's tools into its catalog, once for all who wait for it. */
import { CODES } from '../../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { LegacyView } from '../compat/modern-as-legacy.ts';
import type { UpstreamSettings } from '../config.ts';
import type { FrameOutcome } from '../frames.ts';
import type { McpRequestContext } from '../request-context.ts';
import type { Eras } from './eras.ts';
import type { LegacyPeers } from './legacy-peers.ts';
import { createResponseTimeout } from './timeout.ts';
import type { ToolCatalog } from './tool-catalog.ts';

interface CatalogReaderDeps {
  readonly settings: UpstreamSettings;
  readonly catalog: ToolCatalog;
  readonly eras: Eras;
  readonly legacy: LegacyPeers;
  readonly view: LegacyView;
  exchange(method: string, params: JsonObject, context: McpRequestContext, signal: AbortSignal): Promise<FrameOutcome>;
  /** A context for the gateway's own requests. */
  background(): McpRequestContext;
  /** The source in the catalog for the session with this key. */
  sourceOf(key: string): string;
  /** The tools are no longer those that were known. */
  changed(): void;
}

const MOST_PAGES = 100;

export function createCatalogReader(deps: CatalogReaderDeps): () => Promise<void> {
  const { settings, catalog, eras, legacy, view, exchange, background, sourceOf, changed } = deps;
  let pending: Promise<void> | undefined;

  /** Reads all pages, through an open session where there is one. */
  async function readCatalog(): Promise<void> {
    const context = background();
    const signal = AbortSignal.timeout(settings.startMs + settings.timeoutMs);
    const all: Json[] = [];
    const wanted = catalog.stale();
    const found = wanted === 'modern' ? undefined : legacy.any(wanted);
    const session = await found?.session;
    for (let cursor: Json | undefined, pages = 0; pages < MOST_PAGES; pages += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const timeout = createResponseTimeout(signal, settings.timeoutMs, settings.longestMs);
      const outcome = session
        ? await session.call('tools/list', params, context, timeout).finally(() => timeout.end())
        : await exchange('tools/list', params, context, signal);
      // A server without tools has prompts or resources.
      if ('error' in outcome && outcome.error.code === CODES.methodNotFound) break;
      if ('error' in outcome) throw new RpcError({ code: outcome.error.code, message: outcome.error.message });
      const { tools, nextCursor } = outcome.result;
      all.push(...(Array.isArray(tools) ? tools : []));
      if (nextCursor === undefined || nextCursor === null) break;
      cursor = nextCursor;
    }
    const news = catalog.mayBeTasks(!session && (await makesTasks(context, signal)));
    const modernly = !found && (await eras.of(context)) === 'modern';
    const source = modernly ? 'modern' : sourceOf(found?.key ?? legacy.keyOf(context));
    const other = catalog.update(source, all, true);
    // Its session has ended, so nothing more is to be read there.
    const less = wanted !== undefined && wanted !== source && catalog.gone(wanted);
    if (other || less || news) changed();
  }

  /** Whether a modern server makes tasks of calls. False when that cannot be found out. */
  async function makesTasks(context: McpRequestContext, signal: AbortSignal): Promise<boolean> {
    if ((await eras.own()) !== 'modern') return false;
    const timeout = createResponseTimeout(signal, settings.timeoutMs, settings.longestMs);
    return await view
      .supportsTasks(context, timeout)
      .catch(() => false)
      .finally(() => timeout.end());
  }

  return () => {
    pending ??= readCatalog().finally(() => {
      pending = undefined;
    });
    return pending;
  };
}
