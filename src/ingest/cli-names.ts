/** The CLI agents whose output can be parsed. */
export const cliNames = ['claude', 'codex', 'gemini', 'qwen'] as const
/** The name of a CLI agent. */
export type CliName = (typeof cliNames)[number]

/** Their names for people. */
export const cliTitles: Record<CliName, string> = {
  claude: 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  qwen: 'Qwen Code',
}

/** For messages: `claude (Claude Code), codex (Codex), …`. */
export const allClis = cliNames.map((name) => `${name} (${cliTitles[name]})`).join(', ')
