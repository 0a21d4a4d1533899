/** The server of the official SDK (`sdk-server.ts`): as a stdio config, and over HTTP as a child process of the test. */
import { fileURLToPath } from 'node:url'
import type { McpServer } from '../server.ts'
import { listening, type HttpChild, type Journal } from './everything.ts'

const file = fileURLToPath(new URL('./sdk-server.ts', import.meta.url))

export type ServedEra = 'both' | 'modern' | 'legacy'

export function sdkOverStdio(journal: Journal, era: ServedEra = 'both', script = file): McpServer {
  return { command: process.execPath, args: [script], env: { JOURNAL: journal.file, ERA: era } }
}

/** Port 0 picks a free port. */
export const startSdk = (journal: Journal, era: ServedEra = 'both', port = 0, script = file): Promise<HttpChild> =>
  listening([script], { JOURNAL: journal.file, ERA: era, OVER: 'http', PORT: String(port) })
