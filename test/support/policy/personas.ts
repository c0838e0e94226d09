/** A persona as a person might declare it, apart from what a test is about. */
export const PERSONA = {
  name: 'p',
  version: '1',
  entry_workflow: 'one',
  description: '',
  autonomy_tier: 'suggest',
  receipt_policy: 'required',
} as const;
