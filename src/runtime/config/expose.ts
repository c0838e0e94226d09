/** `tools.<name>.expose`: which tools of a server callers get, how they are shown, and limits of their calls and results. */
import { ClosedWord, NonEmpty } from '../../model/schema.ts';
import { type Static, type TSchema, Type } from '../../model/type.ts';
import { durationMs } from '../../model/values/duration.ts';

const Optional = Type.Optional;
const closed = { additionalProperties: false };
const said = <T extends TSchema>(description: string, schema: T): T => ({ ...schema, description });
const ToolName = Type.Unsafe<string>({ type: 'string', pattern: '^[A-Za-z0-9_./-]{1,128}$' });

export const exposeSchema = Type.Object(
  {
    allow: Optional(
      said(
        'The only tools of this server that callers get, by name; `*` stands for any part of one. All when absent.',
        Type.Array(NonEmpty),
      ),
    ),
    rename: Optional(said('Other names for its tools, by their own.', Type.Record(Type.String(), ToolName))),
    describe: Optional(
      said('Other descriptions for its tools, by their own names.', Type.Record(Type.String(), NonEmpty)),
    ),
    limits: Optional(
      said(
        'How often one caller may call one tool, by name; `*` stands for any part of one. The first that matches counts.',
        Type.Record(
          Type.String(),
          Type.Object(
            {
              calls: Type.Integer({ minimum: 1 }),
              per: Type.Unsafe<string>({
                type: 'string',
                pattern: '^[0-9]{1,9} *(ms|s|m|h|d)$',
                examples: ['1m', '1h'],
              }),
            },
            closed,
          ),
        ),
      ),
    ),
    max_result: Optional(
      said('The longest result that is passed on, in characters.', Type.Integer({ minimum: 100, maximum: 4_194_304 })),
    ),
    results: Optional(
      said(
        'What happens to results that contain one of these texts.',
        Type.Array(
          Type.Object(
            {
              find: said(
                'A text, or several; `*` stands for up to 200 characters without a space.',
                Type.Array(NonEmpty, { minItems: 1 }),
              ),
              tools: Optional(said('Only results of these tools.', Type.Array(NonEmpty))),
              // biome-ignore lint/suspicious/noThenProperty: this is how a rule is written
              then: said(
                'Replace the text, withhold the result, or mark the session as tainted.',
                ClosedWord(['redact', 'block', 'taint']),
              ),
              say: Optional(said('Why, for the caller.', NonEmpty)),
            },
            closed,
          ),
        ),
      ),
    ),
  },
  closed,
);
export type ExposeConfig = Static<typeof exposeSchema>;

/** The members that `tools.<name>` has beside the section of its protocol. */
export const EXPOSE = 'expose';

export interface CallLimitSetting {
  readonly tools: string;
  readonly calls: number;
  readonly perMs: number;
}

export function limitsOf({ limits = {} }: ExposeConfig): readonly CallLimitSetting[] {
  return Object.entries(limits).map(([tools, { calls, per }]) => ({ tools, calls, perMs: durationMs(per) ?? 60_000 }));
}
