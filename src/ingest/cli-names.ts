/** The CLI agents whose output can be parsed. */
export const cliNames = ['claude', 'codex', 'gemini'] as const
/** The name of a CLI agent. */
export type CliName = (typeof cliNames)[number]
