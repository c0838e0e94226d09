/** Short rules that many tests use, as YAML. */

export const ALLOW_ALL = `[{ id: everything, then: allow }]`;
/** Tools whose name begins with `ask` need a person, `no` tools are blocked, `mend` tools get `safe: true`. */
export const MIXED = `
- { id: ordinary, then: allow }
- { id: people, when: { kind: tool, tool: ask* }, then: ask, say: a person decides }
- { id: never, when: { kind: tool, tool: no* }, then: block, say: not here }
- { id: mended, when: { kind: tool, tool: mend* }, then: modify, set: { safe: true }, say: made safe }
`;
