/** The files in which Claude Code keeps its sessions look like its output, but are another format. */
import type { ErrorValue } from '../../part/error.ts'

/** Whether a line without `session_id` is one of such a file. */
export function isSessionFile(line: Record<string, unknown>): boolean {
  return (
    'parentUuid' in line ||
    'isSidechain' in line ||
    typeof line['sessionId'] === 'string' ||
    'leafUuid' in line ||
    line['type'] === 'file-history-snapshot'
  )
}

export const sessionFileError: ErrorValue = {
  code: 'session-file',
  message:
    'This is a session file of Claude Code (~/.claude/projects/…), not its output: it looks alike, but is another format. ' +
    'Record the output instead: claude -p "…" --output-format stream-json --verbose --include-partial-messages > out.jsonl',
}
